"""Anthropic's messages: requests read, answers written, and answers of a real provider read."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pallas_testing.model.exchange import Failure, Finish, Image, Message, Reply, Request, Tool, ToolCall, conversation
from pallas_testing.model.wire import sse
from pallas_testing.model.wire.sse import Event

Json = Mapping[str, Any]
REASONS: Mapping[Finish, str] = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: Json, caller: str) -> Request:
    """Return a request.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    messages = [part for message in body["messages"] for part in _messages(message, names)]
    tools = [tool for tool in body.get("tools") or () if "input_schema" in tool]
    form = (body.get("output_config") or {}).get("format") or body.get("output_format")
    choice = body.get("tool_choice") or {}
    return Request(
        api="messages",
        model=body["model"],
        instruction=_content(body.get("system") or "")[0],
        messages=conversation(messages),
        tools={tool["name"]: Tool(tool.get("description") or "", tool["input_schema"]) for tool in tools},
        schema=form.get("schema", {}) if form else None,
        forced_tool=choice["name"] if choice.get("type") == "tool" else "",
        stream=bool(body.get("stream")),
        caller=caller,
        body=body,
    )


def _messages(message: Json, names: Mapping[str, str]) -> Iterator[Message]:
    blocks = _blocks(message["content"])
    for block in blocks:
        if block["type"] == "tool_result":
            text, images = _content(block.get("content") or "")
            yield Message("tool", text, images=images, tool=names.get(block["tool_use_id"], ""))
    text, images = _content(blocks)
    calls = tuple(ToolCall(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use")
    if message["role"] == "assistant":
        yield Message("assistant", text, calls)
    elif text or images or not any(block["type"] == "tool_result" for block in blocks):
        yield Message("user", text, images=images)


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _content(content: Any) -> tuple[str, tuple[Image, ...]]:
    """Return text and images of blocks; a block of another kind is its type in brackets."""
    texts: list[str] = []
    images: list[Image] = []
    for block in _blocks(content):
        match block["type"]:
            case "text":
                texts.append(block["text"])
            case "image":
                images.append(_image(block["source"]))
            case "tool_use" | "tool_result" | "thinking" | "redacted_thinking":
                pass
            case other:
                texts.append(f"[{other}]")
    return "\n".join(texts), tuple(images)


def _image(source: Json) -> Image:
    if source["type"] == "base64":
        return Image(source["media_type"], base64.b64decode(source["data"]))
    return Image("image/*", url=source.get("url") or source.get("file_id") or "")


def whole(request: Request, reply: Reply) -> Json:
    """Return the answer in one piece."""
    reason = _reason(reply)
    usage = {"input_tokens": 0, "output_tokens": sse.count(reply)}
    text = [{"type": "text", "text": reply.text}] if reply.text else []
    calls = [{**block, "input": values} for block, values in _calls(request, reply)]
    return {**_head(request), "content": text + calls, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def events(request: Request, reply: Reply) -> Iterator[Event]:
    """Yield the answer as a stream."""
    for kind, data, token in _events(request, reply):
        yield Event({"type": kind, **data}, kind, token)


def _events(request: Request, reply: Reply) -> Iterator[tuple[str, Json, bool]]:
    usage = {"input_tokens": 0, "output_tokens": 0}
    message = {**_head(request), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield "message_start", {"message": message}, False
    blocks: list[tuple[Json, list[Json]]] = []
    if reply.text:
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in sse.pieces(reply.text)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for block, values in _calls(request, reply):
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in sse.slices(sse.dump(values))]
        blocks.append(({**block, "input": {}}, deltas))
    for index, (opened, deltas) in enumerate(blocks):
        yield "content_block_start", {"index": index, "content_block": opened}, False
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}, True
        yield "content_block_stop", {"index": index}, False
    end = {"stop_reason": _reason(reply), "stop_sequence": None}
    yield "message_delta", {"delta": end, "usage": {"output_tokens": sse.count(reply)}}, False
    yield "message_stop", {}, False


def failure(error: Failure) -> Json:
    """Return the body of an HTTP error."""
    kind = error.type or TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": None}


def read_whole(body: Json) -> Reply:
    """Return what a provider answered in one piece.

    Raises:
        KeyError, TypeError, ValueError: it is no answer of this API.
    """
    text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    calls = tuple(ToolCall(block["name"], block["input"]) for block in body["content"] if block["type"] == "tool_use")
    return Reply(text, calls, _finish(body.get("stop_reason")))


def read_events(stream: Iterable[Json]) -> Reply:
    """Return what a provider answered as a stream.

    Raises:
        ValueError: the stream ended early, or with an error.
    """
    text = ""
    reason: str | None = None
    calls: dict[int, list[str]] = {}
    for event in stream:
        match event.get("type"):
            case "content_block_start" if event["content_block"]["type"] == "tool_use":
                calls[event["index"]] = [event["content_block"]["name"], ""]
            case "content_block_delta" if event["delta"]["type"] == "text_delta":
                text += event["delta"]["text"]
            case "content_block_delta" if event["delta"]["type"] == "input_json_delta" and event["index"] in calls:
                calls[event["index"]][1] += event["delta"]["partial_json"]
            case "message_delta":
                reason = event["delta"].get("stop_reason") or reason
            case "message_stop" if reason is not None:
                made = tuple(ToolCall(name, sse.arguments(values)) for name, values in calls.values())
                return Reply(text, made, _finish(reason))
    raise ValueError("the stream ended before the answer did")


def _calls(request: Request, reply: Reply) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for index, call in enumerate(reply.calls):
        block = {"type": "tool_use", "id": f"toolu_{len(request.messages)}_{index}", "name": call.tool}
        yield block, dict(call.arguments)


def _head(request: Request) -> Json:
    return {"id": f"msg_{len(request.messages)}", "type": "message", "role": "assistant", "model": request.model}


def _reason(reply: Reply) -> str:
    return "tool_use" if reply.calls and reply.finish == "stop" else REASONS[reply.finish]


def _finish(reason: str | None) -> Finish:
    return next((word for word, theirs in REASONS.items() if theirs == reason), "stop")
