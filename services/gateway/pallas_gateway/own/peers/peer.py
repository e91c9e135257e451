"""One call of a tool of an agent or service behind the gateway, in the stateless era."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import mcp_types as t

from pallas_contract import __version__, names
from pallas_contract.probe.session import META, MODERN
from pallas_gateway.data_plane import headers, message, upstream
from pallas_gateway.data_plane.plane import Route
from pallas_gateway.own.failures import Failed

_CLIENT = {"name": "pallas-gateway", "version": __version__}
MOST = 4 << 20
"""Bytes of an answer."""
_LARGE = 256 << 10
"""Bytes of an answer from which on it is not read in the event loop."""
_SHOWN = 200
"""Characters of a peer's error that are shown."""
_PROGRESS = b'"notifications/progress"'
_MOST_PROGRESS = 16 << 10
"""Bytes of a notification of progress that is passed on."""
Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes progress, total and message, as a notification of progress has them."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A member of the fleet behind the gateway."""

    kind: Literal["agent", "service"]
    host: str
    route: Route

    def __str__(self) -> str:
        return f"{self.kind} `{self.host}`"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call with `seconds` left for it. `caller` is the digest of the verified caller, empty where none goes along."""

    tool: str
    arguments: Mapping[str, Any]
    seconds: float
    traceparent: str
    caller: str = ""
    model: str | None = None
    """The model that is to answer, empty where any may; None where it is not asked for either."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The texts of a tool's result in one, which has a form in UTF-8, and the object beside it.

    `failed` says that the text is the reason why there is no other; `model` is the model that has answered, where it
    was asked for.
    """

    text: str
    failed: bool
    structured: dict[str, Any] | None = None
    model: str | None = None


async def ask(client: aiohttp.ClientSession, peer: Peer, call: ToolCall, progress: Progress | None = None) -> Answer:
    """Return the answer of `peer`; what it tells of its progress meanwhile goes to `progress`.

    Raises:
        Failed: there is none.
    """
    head = [
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", call.tool.encode()),
        (b"traceparent", call.traceparent.encode()),
    ]
    body = upstream.Outgoing(_request(call, with_progress=progress is not None), lambda: None)
    passed = headers.for_agent(head, token=peer.route.token, caller=call.caller)
    try:
        async with upstream.exchange(client, "POST", peer.route.url, headers=passed, body=body) as response:
            if response.status in (401, 403):
                raise Failed("not_admitted", f"{peer} does not admit the gateway")
            data = await _read(response, peer, progress)
    except upstream.Unreachable as error:
        raise Failed("unreachable", f"{peer} {error}") from None
    except upstream.Interrupted as error:
        raise Failed("interrupted", f"{peer} broke off its answer: it {error}") from None
    if len(data) <= _LARGE:
        return _answer(data, peer)
    return await asyncio.to_thread(_answer, data, peer)


async def _read(response: aiohttp.ClientResponse, peer: Peer, progress: Progress | None) -> bytes:
    """Return the body without what it tells of progress, which goes to `progress` as it comes."""
    data = bytearray()
    line = 0
    async for piece in upstream.pieces(response):
        data += piece
        end = data.rfind(b"\n", line) + 1
        if progress is not None and end:
            others = bytearray()
            for part in bytes(data[line:end]).splitlines(keepends=True):
                if params := _told(part):
                    await progress(params.progress, params.total, params.message)
                else:
                    others += part
            data[line:end] = others
            line += len(others)
        if len(data) > MOST:
            raise Failed("failed", f"{peer} answers more than {MOST} bytes")
    return bytes(data)


def _told(line: bytes) -> t.ProgressNotificationParams | None:
    """Return what a line of an event stream tells of progress; None where it is something else."""
    if _PROGRESS not in line or len(line) > _MOST_PROGRESS or not line.startswith(b"data:"):
        return None
    with suppress(ValueError, RecursionError):
        params = t.ProgressNotification.model_validate_json(line[5:]).params
        if math.isfinite(params.progress) and math.isfinite(params.total or 0):
            return params
    return None


def _request(call: ToolCall, *, with_progress: bool) -> bytes:
    meta: dict[str, Any] = {
        f"{META}protocolVersion": MODERN,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": _CLIENT,
        names.META_SECONDS: f"{call.seconds:g}",
    }
    if call.model is not None:
        meta[names.META_MODEL] = call.model
    if with_progress:
        meta["progressToken"] = 1
    params = {"name": call.tool, "arguments": call.arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def _answer(data: bytes, peer: Peer) -> Answer:
    if message.has_more_values(data, message.MOST_VALUES):
        raise Failed("failed", f"{peer} answers more than {message.MOST_VALUES} values")
    reply = _reply(data)
    result = reply.get("result")
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        blocks = [block for block in result["content"] if isinstance(block, dict)]
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        structured = result.get("structuredContent")
        return Answer(
            _text("\n".join(texts)),
            failed=bool(result.get("isError")),
            structured=structured if isinstance(structured, dict) else None,
            model=_model(result.get("_meta")),
        )
    error = reply.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return Answer(_text(error["message"][:_SHOWN]), failed=True)
    raise Failed("failed", f"{peer} gives no answer of MCP")


def _model(meta: Any) -> str | None:
    model = meta.get(names.META_MODEL) if isinstance(meta, dict) else None
    return _text(model[:_SHOWN]) if isinstance(model, str) else None


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
