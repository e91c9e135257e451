"""One call of a tool of an agent or service behind the gateway, in the stateless era."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import aiohttp
import mcp_types as t
from mcp.shared.inbound import encode_header_value

from pallas_contract import __version__, names
from pallas_contract.json_values import has_more_values
from pallas_contract.probe.session import META, MODERN
from pallas_gateway.data_plane import headers, message, upstream
from pallas_gateway.own.failures import Failed
from pallas_gateway.policy.route import Route
from pallas_gateway.telemetry import spans

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
    task: str = ""
    """Id of the task that it is part of; the agent makes one where it is empty."""


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
    with spans.asking(peer.kind, peer.host, call.tool, call.task):
        call = replace(call, traceparent=spans.traceparent() or call.traceparent)
        answer = await _asked(client, peer, call, progress)
        if answer.failed:
            spans.failed("tool_error")
        return answer


async def _asked(client: aiohttp.ClientSession, peer: Peer, call: ToolCall, progress: Progress | None) -> Answer:
    params = {"name": call.tool, "arguments": call.arguments, "_meta": _meta(call, with_progress=progress is not None)}
    data = await _exchanged(client, peer, call, ("tools/call", call.tool), params=params, progress=progress)
    if len(data) <= _LARGE:
        return _answer(data, peer)
    return await asyncio.to_thread(_answer, data, peer)


async def tools(client: aiohttp.ClientSession, peer: Peer, call: ToolCall) -> dict[str, dict[str, Any]]:
    """Return what `peer` says of each of its tools (MCP, Tool), by name; `call` is the one that it is asked for.

    Raises:
        Failed: it gives no list, or one in several pages: that of an agent is short.
    """
    params = {"_meta": _meta(call, with_progress=False)}
    data = await _exchanged(client, peer, call, ("tools/list", ""), params=params, progress=None)
    result = _reply(data).get("result")
    listed = result.get("tools") if isinstance(result, dict) and not result.get("nextCursor") else None
    if not isinstance(listed, list):
        raise Failed("failed", f"{peer} gives no list of its tools")
    return {tool["name"]: tool for tool in listed if isinstance(tool, dict) and isinstance(tool.get("name"), str)}


async def _exchanged(
    client: aiohttp.ClientSession,
    peer: Peer,
    call: ToolCall,
    route: tuple[str, str],
    *,
    params: Mapping[str, Any],
    progress: Progress | None,
) -> bytes:
    """Return the body that answers a request; `route` is its method, and its name where it has one."""
    method, name = route
    head = [
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", method.encode()),
        *([(b"mcp-name", encode_header_value(name).encode())] if name else []),
        (b"traceparent", call.traceparent.encode()),
    ]
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    body = upstream.Outgoing(json.dumps(request).encode(), lambda: None)
    passed = headers.for_agent(head, token=peer.route.token, caller=call.caller)
    try:
        async with upstream.exchange(client, "POST", peer.route.url, headers=passed, body=body) as response:
            if response.status in (401, 403):
                raise Failed("not_admitted", f"{peer} does not admit the gateway")
            return await _read(response, peer, progress)
    except upstream.Unreachable as error:
        raise Failed("unreachable", f"{peer} {error}") from None
    except upstream.Interrupted as error:
        raise Failed("interrupted", f"{peer} broke off its answer: it {error}") from None


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


def _meta(call: ToolCall, *, with_progress: bool) -> dict[str, Any]:
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
    if call.task:
        meta[names.META_TASK] = call.task
    return meta


def _answer(data: bytes, peer: Peer) -> Answer:
    if has_more_values(data, message.MOST_VALUES):
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
            model=_model_of(result.get("_meta")),
        )
    error = reply.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return Answer(_text(error["message"][:_SHOWN]), failed=True)
    raise Failed("failed", f"{peer} gives no answer of MCP")


def _model_of(meta: Any) -> str | None:
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
