"""OpenAI's Responses: requests read, answers written, and answers of a real provider read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pallas_testing.model.exchange import Finish, Message, Reply, Request, Role, Tool, ToolCall, conversation
from pallas_testing.model.wire import chat, parts, sse
from pallas_testing.model.wire.sse import Event

Json = Mapping[str, Any]
INCOMPLETE: Mapping[Finish, str] = {"length": "max_output_tokens", "refusal": "content_filter"}

failure = chat.failure


def read(body: Json, caller: str) -> Request:
    """Return a request.

    Raises:
        KeyError, TypeError, ValueError: it is none, or one that goes on from an answer that only a provider remembers.
    """
    if body.get("previous_response_id"):
        raise ValueError("previous_response_id is not understood here: send the whole input")
    items = [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]
    names = {item["call_id"]: item["name"] for item in items if item.get("type") == "function_call"}
    instructions = [body.get("instructions") or ""]
    messages: list[Message] = []
    for item in items:
        match item.get("type", "message"):
            case "function_call":
                call = ToolCall(item["name"], sse.arguments(item["arguments"]))
                messages.append(Message("assistant", calls=(call,)))
            case "function_call_output":
                text, images = parts.content(item["output"])
                messages.append(Message("tool", text, images=images, tool=names.get(item["call_id"], "")))
            case "message":
                text, images = parts.content(item["content"])
                if item["role"] in ("system", "developer"):
                    instructions.append(text)
                else:
                    role: Role = "assistant" if item["role"] == "assistant" else "user"
                    messages.append(Message(role, text, images=images))
    tools = [tool for tool in body.get("tools") or () if tool.get("type") == "function"]
    form = (body.get("text") or {}).get("format") or {}
    choice = body.get("tool_choice")
    return Request(
        api="responses",
        model=body["model"],
        instruction="\n".join(filter(None, instructions)),
        messages=conversation(messages),
        tools={tool["name"]: Tool(tool.get("description") or "", tool.get("parameters") or {}) for tool in tools},
        schema=None if form.get("type", "text") == "text" else form.get("schema", {}),
        forced_tool=choice.get("name", "") if isinstance(choice, dict) else "",
        stream=bool(body.get("stream")),
        caller=caller,
        body=body,
    )


def whole(request: Request, reply: Reply) -> Json:
    """Return the answer in one piece."""
    output = [item for item, _ in _items(request, reply)]
    incomplete = {"reason": INCOMPLETE[reply.finish]} if reply.finish in INCOMPLETE else None
    tokens = sse.count(reply)
    usage = {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens,
    }
    status = "incomplete" if incomplete else "completed"
    return {**_head(request), "status": status, "incomplete_details": incomplete, "output": output, "usage": usage}


def events(request: Request, reply: Reply) -> Iterator[Event]:
    """Yield the answer as a stream, numbered as the API does."""
    for number, (kind, data, token) in enumerate(_events(request, reply)):
        yield Event({"type": kind, "sequence_number": number, **data}, kind, token)


def _events(request: Request, reply: Reply) -> Iterator[tuple[str, Json, bool]]:
    started = {**_head(request), "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield "response.created", {"response": started}, False
    yield "response.in_progress", {"response": started}, False
    for index, (item, call) in enumerate(_items(request, reply)):
        place = {"item_id": item["id"], "output_index": index}
        if call is None:
            yield from _text_events(item, place, reply.text)
        else:
            yield from _call_events(item, place)
        yield "response.output_item.done", {"output_index": index, "item": item}, False
    end = "response.completed" if reply.finish == "stop" else "response.incomplete"
    yield end, {"response": whole(request, reply)}, False


def _text_events(item: Json, place: Json, text: str) -> Iterator[tuple[str, Json, bool]]:
    opened = {**item, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": place["output_index"], "item": opened}, False
    place = {**place, "content_index": 0}
    yield "response.content_part.added", {**place, "part": _part("")}, False
    for piece in sse.pieces(text):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}, True
    yield "response.output_text.done", {**place, "text": text, "logprobs": []}, False
    yield "response.content_part.done", {**place, "part": _part(text)}, False


def _call_events(item: Json, place: Json) -> Iterator[tuple[str, Json, bool]]:
    opened = {**item, "status": "in_progress", "arguments": ""}
    yield "response.output_item.added", {"output_index": place["output_index"], "item": opened}, False
    for piece in sse.slices(item["arguments"]):
        yield "response.function_call_arguments.delta", {**place, "delta": piece}, True
    end = {**place, "name": item["name"], "arguments": item["arguments"]}
    yield "response.function_call_arguments.done", end, False


def read_whole(body: Json) -> Reply:
    """Return what a provider answered in one piece.

    Raises:
        KeyError, TypeError, ValueError: it is no answer of this API.
    """
    text = ""
    calls: list[ToolCall] = []
    for item in body["output"]:
        if item["type"] == "message":
            text += "".join(part.get("text") or part.get("refusal") or "" for part in item["content"])
        elif item["type"] == "function_call":
            calls.append(ToolCall(item["name"], sse.arguments(item["arguments"])))
    reason = (body.get("incomplete_details") or {}).get("reason")
    return Reply(text, tuple(calls), _finish(reason))


def read_events(stream: Iterable[Json]) -> Reply:
    """Return what a provider answered as a stream.

    Raises:
        ValueError: the stream ended early, or with an error.
    """
    for event in stream:
        if event.get("type") in ("response.completed", "response.incomplete"):
            return read_whole(event["response"])
    raise ValueError("the stream ended before the answer did")


def _finish(reason: str | None) -> Finish:
    return next((word for word, theirs in INCOMPLETE.items() if theirs == reason), "stop")


def _head(request: Request) -> Json:
    return {
        "id": f"resp_{len(request.messages)}",
        "object": "response",
        "created_at": 0,
        "model": request.model,
        "error": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }


def _items(request: Request, reply: Reply) -> Iterator[tuple[dict[str, Any], ToolCall | None]]:
    turn = len(request.messages)
    if reply.text or not reply.calls:
        message = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "status": "completed"}
        yield {**message, "content": [_part(reply.text)]}, None
    for index, call in enumerate(reply.calls):
        item = {"id": f"fc_{turn}_{index}", "type": "function_call", "status": "completed"}
        arguments = sse.dump(dict(call.arguments))
        yield {**item, "call_id": f"call_{turn}_{index}", "name": call.tool, "arguments": arguments}, call


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
