"""OpenAI's chat completions: requests read, answers written, and answers of a real provider read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pallas_testing.model.exchange import Failure, Finish, Message, Reply, Request, Tool, ToolCall, conversation
from pallas_testing.model.wire import parts, sse
from pallas_testing.model.wire.sse import Event

Json = Mapping[str, Any]
REASONS: Mapping[Finish, str] = {"stop": "stop", "length": "length", "refusal": "content_filter"}
TYPES = {401: "invalid_request_error", 429: "requests", 500: "server_error"}
CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def read(body: Json, caller: str) -> Request:
    """Return a request.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    names = {
        call["id"]: call["function"]["name"] for message in body["messages"] for call in message.get("tool_calls") or ()
    }
    instructions: list[str] = []
    messages: list[Message] = []
    for message in body["messages"]:
        text, images = parts.content(message.get("content"))
        match message["role"]:
            case "system" | "developer":
                instructions.append(text)
            case "tool":
                messages.append(Message("tool", text, images=images, tool=names.get(message["tool_call_id"], "")))
            case "assistant":
                calls = (call["function"] for call in message.get("tool_calls") or ())
                made = tuple(ToolCall(call["name"], sse.arguments(call["arguments"])) for call in calls)
                messages.append(Message("assistant", text, made))
            case _:
                messages.append(Message("user", text, images=images))
    functions = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    choice = body.get("tool_choice")
    return Request(
        api="chat",
        model=body["model"],
        instruction="\n".join(instructions),
        messages=conversation(messages),
        tools={tool["name"]: Tool(tool.get("description") or "", tool.get("parameters") or {}) for tool in functions},
        schema=_schema(body.get("response_format")),
        forced_tool=choice["function"]["name"] if isinstance(choice, dict) and "function" in choice else "",
        stream=bool(body.get("stream")),
        caller=caller,
        body=body,
    )


def _schema(form: Json | None) -> Json | None:
    if not form or form.get("type") == "text":
        return None
    schema: Json = form.get("json_schema", {}).get("schema", {})
    return schema


def whole(request: Request, reply: Reply) -> Json:
    """Return the answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = _calls(request, reply)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(reply)}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def events(request: Request, reply: Reply) -> Iterator[Event]:
    """Yield the answer as a stream."""

    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    head = _head(request, "chat.completion.chunk")
    yield Event(chunk({"role": "assistant", "content": "" if reply.text else None}))
    for piece in sse.pieces(reply.text):
        yield Event(chunk({"content": piece}), token=True)
    for index, call in enumerate(_calls(request, reply)):
        function = {**call["function"], "arguments": ""}
        yield Event(chunk({"tool_calls": [{**call, "index": index, "function": function}]}))
        for piece in sse.slices(call["function"]["arguments"]):
            yield Event(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), token=True)
    yield Event(chunk({}, _reason(reply)))
    if (request.body.get("stream_options") or {}).get("include_usage"):
        yield Event({**head, "choices": [], "usage": _usage(reply)})
    yield Event("[DONE]")


def failure(error: Failure) -> Json:
    """Return the body of an HTTP error."""
    kind = error.type or TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    return {"error": {"message": error.message, "type": kind, "param": None, "code": CODES.get(error.status)}}


def read_whole(body: Json) -> Reply:
    """Return what a provider answered in one piece.

    Raises:
        KeyError, TypeError, ValueError: it is no answer of this API.
    """
    choice = body["choices"][0]
    message = choice["message"]
    functions = (call["function"] for call in message.get("tool_calls") or ())
    calls = tuple(ToolCall(call["name"], sse.arguments(call["arguments"])) for call in functions)
    return Reply(message.get("content") or "", calls, _finish(choice.get("finish_reason")))


def read_events(stream: Iterable[Json]) -> Reply:
    """Return what a provider answered as a stream.

    Raises:
        ValueError: the stream ended early.
    """
    text = ""
    reason: str | None = None
    calls: dict[int, list[str]] = {}
    for chunk in stream:
        for choice in chunk.get("choices") or ():
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls") or ():
                call = calls.setdefault(part["index"], ["", ""])
                function = part.get("function") or {}
                call[0] += function.get("name") or ""
                call[1] += function.get("arguments") or ""
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise ValueError("the stream ended before the answer did")
    return Reply(text, tuple(ToolCall(name, sse.arguments(values)) for name, values in calls.values()), _finish(reason))


def _calls(request: Request, reply: Reply) -> list[dict[str, Any]]:
    # Ids count messages: unique in a conversation, and the same whenever the same conversation comes again.
    return [
        {
            "id": f"call_{len(request.messages)}_{index}",
            "type": "function",
            "function": {"name": call.tool, "arguments": sse.dump(dict(call.arguments))},
        }
        for index, call in enumerate(reply.calls)
    ]


def _head(request: Request, kind: str) -> Json:
    return {"id": f"chatcmpl-{len(request.messages)}", "object": kind, "created": 0, "model": request.model}


def _reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls and reply.finish == "stop" else REASONS[reply.finish]


def _finish(reason: str | None) -> Finish:
    return next((word for word, theirs in REASONS.items() if theirs == reason), "stop")


def _usage(reply: Reply) -> Json:
    tokens = sse.count(reply)
    return {"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens}
