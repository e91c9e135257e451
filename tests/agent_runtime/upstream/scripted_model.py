"""A model that follows a script, behind the three APIs that fast-agent's examples ask for.

OpenAI's chat completions and responses, and Anthropic's messages; each as the event stream that fast-agent reads.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 1, "output_tokens": 1}


@dataclass(frozen=True)
class Request:
    """A request to the model, the same whichever API it came by."""

    model: str
    system: str
    messages: tuple[tuple[str, str], ...]
    """Role (`user`, `assistant`, `tool`) and text of each."""
    tools: dict[str, dict[str, Any]]
    """Name -> JSON Schema of its arguments."""
    schema: dict[str, Any]
    """JSON Schema of the answer, empty where it is free text."""

    @property
    def last(self) -> tuple[str, str]:
        return self.messages[-1]


@dataclass(frozen=True)
class Reply:
    """A text, and calls of tools: name and arguments."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass
class ScriptedModel:
    """The stand-in: `script` answers, `requests` keeps what was asked."""

    script: Callable[[Request], Reply]
    address: str = ""
    requests: list[Request] = field(default_factory=list)

    def environ(self) -> dict[str, str]:
        """Return the variables by which fast-agent finds it."""
        return {
            "OPENAI_API_KEY": "sk-openai",
            "OPENAI_BASE_URL": f"{self.address}/v1",
            "ANTHROPIC_API_KEY": "sk-anthropic",
            "ANTHROPIC_BASE_URL": self.address,
        }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or _text(part.get("content") or "") for part in content or ())


def _chat(body: dict[str, Any]) -> Request:
    roles = {"developer": "system"}
    messages = [
        (roles.get(message["role"], message["role"]), _text(message.get("content"))) for message in body["messages"]
    ]
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", ())}
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return _request(body["model"], messages, tools, schema)


def _messages(body: dict[str, Any]) -> Request:
    messages = [("system", _text(body.get("system")))]
    for message in body["messages"]:
        results = isinstance(message["content"], list) and message["content"][0]["type"] == "tool_result"
        messages.append(("tool" if results else message["role"], _text(message["content"])))
    tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools", ()) if "input_schema" in tool}
    form = body.get("output_format") or body.get("output_config", {}).get("format") or {}
    return _request(body["model"], messages, tools, form.get("schema", {}))


def _responses(body: dict[str, Any]) -> Request:
    messages = [("system", body.get("instructions") or "")]
    for item in body["input"]:
        if item.get("type") == "function_call_output":
            messages.append(("tool", _text(item["output"])))
        elif "role" in item:
            messages.append((item["role"], _text(item["content"])))
    tools = {tool["name"]: tool["parameters"] for tool in body.get("tools", ()) if tool["type"] == "function"}
    return _request(body["model"], messages, tools, body.get("text", {}).get("format", {}).get("schema", {}))


def _request(model: str, messages: list[tuple[str, str]], tools: dict[str, Any], schema: dict[str, Any]) -> Request:
    system = "\n".join(text for role, text in messages if role == "system")
    return Request(model, system, tuple(entry for entry in messages if entry[0] != "system"), tools, schema)


def _chat_events(model: str, reply: Reply) -> Iterator[tuple[str, Any]]:
    calls = [
        {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate((name, json.dumps(values)) for name, values in reply.calls)
    ]
    delta = {"role": "assistant", "content": reply.text, **({"tool_calls": calls} if calls else {})}
    for part, reason in ((delta, None), ({}, "tool_calls" if calls else "stop")):
        choice = {"index": 0, "delta": part, "finish_reason": reason}
        yield "", {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}


def _messages_events(model: str, reply: Reply) -> Iterator[tuple[str, Any]]:
    about = {"id": "m", "type": "message", "role": "assistant", "model": model, "content": [], "usage": USAGE}
    yield "message_start", {"message": {**about, "stop_reason": None, "stop_sequence": None}}
    blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text})] if reply.text else []
    for index, (name, arguments) in enumerate(reply.calls):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}))
    for index, (block, delta) in enumerate(blocks):
        yield "content_block_start", {"index": index, "content_block": block}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    reason = "tool_use" if reply.calls else "end_turn"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": USAGE}
    yield "message_stop", {}


def _responses_events(model: str, reply: Reply) -> Iterator[tuple[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        items.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]})
    for index, (name, arguments) in enumerate(reply.calls):
        call = {"type": "function_call", "id": f"f{index}", "call_id": f"call_{index}", "status": "completed"}
        items.append({**call, "name": name, "arguments": json.dumps(arguments)})
    totals = {**USAGE, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}}
    about = {"id": "r", "object": "response", "created_at": 1, "model": model, "parallel_tool_calls": True}
    about |= {"tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "instructions": None}
    yield "response.created", {"response": {**about, "status": "in_progress", "output": []}}
    for index, item in enumerate(items):
        yield "response.output_item.added", {"output_index": index, "item": item}
        yield "response.output_item.done", {"output_index": index, "item": item}
    usage = {**totals, "output_tokens_details": {"reasoning_tokens": 0}}
    yield "response.completed", {"response": {**about, "status": "completed", "output": items, "usage": usage}}


APIS = {
    "/v1/chat/completions": (_chat, _chat_events),
    "/v1/messages": (_messages, _messages_events),
    "/v1/responses": (_responses, _responses_events),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # a client of WebSockets takes no other
    model: ScriptedModel

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        """Know every model; for a WebSocket there is nothing here."""
        models = self.path.startswith("/v1/models")
        self._json(200 if models else 404, {"id": self.path.rpartition("/")[2], "data": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        api = APIS.get(self.path.partition("?")[0])
        if api is None:
            self._json(404, {"error": {"message": f"no such API: {self.path}"}})
            return
        read, events = api
        request = read(body)
        self.model.requests.append(request)
        reply = self.model.script(request)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for number, (kind, data) in enumerate(events(request.model, reply)):
                typed = {"type": kind, "sequence_number": number, **data} if kind else data
                named = f"event: {kind}\n" if kind else ""
                self.wfile.write(f"{named}data: {json.dumps(typed)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n" if self.path.startswith("/v1/chat") else b"")

    def _json(self, status: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving(model: ScriptedModel) -> Iterator[ScriptedModel]:
    """Serve the model on a free port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model})) as server:
        model.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
