"""One question to an agent behind the gateway: its tool `send_message`, in the stateless era."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from pallas_contract import __version__, names
from pallas_contract.probe.session import META, MODERN
from pallas_gateway.data_plane import headers, message, upstream
from pallas_gateway.data_plane.plane import Route
from pallas_gateway.own.failures import Failed

_TOOL = "send_message"
_CLIENT = {"name": "pallas-gateway", "version": __version__}
MOST = 4 << 20
"""Bytes of an answer."""
_LARGE = 256 << 10
"""Bytes of an answer from which on it is not read in the event loop."""
_SHOWN = 200
"""Characters of an agent's error that are shown."""


@dataclass(frozen=True, slots=True)
class Question:
    """A message, in the conversation `handle` where that is not empty, with `seconds` left for it."""

    text: str
    handle: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of an agent, which has a form in UTF-8; `failed` where it is the reason why there is no other."""

    text: str
    failed: bool


async def ask(
    client: aiohttp.ClientSession, host: str, route: Route, question: Question, *, caller: str, traceparent: str
) -> Answer:
    """Return the answer of agent `host`; `caller` is the digest of the verified caller.

    Raises:
        Failed: there is none.
    """
    head = [
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", _TOOL.encode()),
        (b"traceparent", traceparent.encode()),
    ]
    body = upstream.Outgoing(_request(question), lambda: None)
    passed = headers.for_agent(head, token=route.token, caller=caller)
    try:
        async with upstream.exchange(client, "POST", route.url, headers=passed, body=body) as response:
            if response.status in (401, 403):
                raise Failed("not_admitted", f"agent `{host}` does not admit the gateway")
            data = bytearray()
            async for piece in upstream.pieces(response):
                data += piece
                if len(data) > MOST:
                    raise Failed("failed", f"agent `{host}` answers more than {MOST} bytes")
    except upstream.Unreachable as error:
        raise Failed("unreachable", f"agent `{host}` {error}") from None
    except upstream.Interrupted as error:
        raise Failed("interrupted", f"agent `{host}` broke off its answer: it {error}") from None
    if len(data) <= _LARGE:
        return _answer(bytes(data), host)
    return await asyncio.to_thread(_answer, bytes(data), host)


def _request(question: Question) -> bytes:
    arguments = {"message": question.text} | ({"session_id": question.handle} if question.handle else {})
    meta = {
        f"{META}protocolVersion": MODERN,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": _CLIENT,
        names.META_SECONDS: f"{question.seconds:g}",
    }
    params = {"name": _TOOL, "arguments": arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def _answer(data: bytes, host: str) -> Answer:
    if message.has_more_values(data, message.MOST_VALUES):
        raise Failed("failed", f"agent `{host}` answers more than {message.MOST_VALUES} values")
    reply = _reply(data)
    result = reply.get("result")
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        blocks = [block for block in result["content"] if isinstance(block, dict)]
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        return Answer(_text("\n".join(texts)), failed=bool(result.get("isError")))
    error = reply.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return Answer(_text(error["message"][:_SHOWN]), failed=True)
    raise Failed("failed", f"agent `{host}` gives no answer of MCP")


def _text(text: str) -> str:
    # JSON can name half a surrogate pair, which has no form in UTF-8
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _reply(data: bytes) -> dict[str, Any]:
    """Return the JSON-RPC answer in a body, or in the last event of a stream that has one."""
    lines = [data, *(line[5:] for line in data.splitlines() if line.startswith(b"data:"))]
    for line in reversed(lines):
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(reply, dict) and ("result" in reply or "error" in reply):
            return reply
    return {}
