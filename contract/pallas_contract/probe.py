"""The MCP prober: one set of questions for registry, runtime, container healthcheck and `pallas-gen probe`.

It only POSTs. The current era (2026-07-28) is asked with `server/discover`, which is stateless; a server that does
not know it is asked with `initialize`, and the session that opens is deleted again: no probe leaves anything behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pallas_contract import __version__, health, http
from pallas_contract.health import State

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
Era = Literal["2026-07-28", "2025-11-25"]

_LEGACY_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", LEGACY})

TIMEOUT = 3.0
"""Seconds for a whole probe, all its requests together (seed 000: 3 seconds per downstream probe)."""
_GOODBYE = 1.0
_MAX_TEXT = 500
_NO_SUCH_TOOL = (-32601, -32602)
"""JSON-RPC: unknown method (a server without tools), invalid parameters (a server without this tool)."""

Clock = Callable[[], float]
Request = Callable[..., Awaitable[http.Reply]]

_CLIENT = {"name": "pallas-probe", "version": __version__}
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Target:
    """What to probe. `address` is an IP to connect to instead of resolving the URL's host; `deep` asks `get_health`."""

    url: str
    address: str | None = None
    deep: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a probe found. `latency` in seconds; `era` empty when it is not known."""

    state: State
    reason: str = ""
    era: str = ""
    latency: float = 0.0
    name: str = ""
    version: str = ""

    @property
    def reachable(self) -> bool:
        return self.state in ("ok", "degraded", "unauthenticated")


class _Verdict(Exception):
    """A finding that ends the probe early."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state, self.reason = state, reason


class _NotModern(Exception):
    """The server answered as one that does not know `server/discover`."""


async def probe(
    target: Target,
    *,
    era: str = "",
    timeout: float = TIMEOUT,
    clock: Clock = time.monotonic,
    request: Request = http.request,
) -> Result:
    """Probe once; never raises for anything the server does. `era` is what an earlier probe found, tried first."""
    started = clock()
    talk = _Talk(target, request)
    try:
        result = await _bounded(talk, era, timeout)
        return replace(result, latency=clock() - started)
    finally:
        await talk.leave()


async def _bounded(talk: _Talk, era: str, timeout: float) -> Result:
    try:
        async with asyncio.timeout(timeout):
            return await _ask(talk, era)
    except _Verdict as verdict:
        return Result(verdict.state, verdict.reason, era)
    except TimeoutError:
        return Result("error", f"no answer in {timeout:g} s", era)
    except (http.Unreachable, ValueError) as error:
        return Result("error", str(error), era)


async def _ask(talk: _Talk, era: str) -> Result:
    if era == LEGACY:
        try:
            return await _legacy(talk)
        except _Verdict as verdict:
            if not verdict.reason.startswith(("HTTP 4", "JSON-RPC")):
                raise
            await talk.leave()
    try:
        return await _modern(talk)
    except _NotModern:
        await talk.leave()  # some servers open a session for any first request, even one they refuse
        return await _legacy(talk)


async def _modern(talk: _Talk) -> Result:
    reply = await talk.post("server/discover", {}, era=MODERN)
    answer = talk.answer(reply)
    result = answer.get("result")
    if reply.status >= 400 or not isinstance(result, dict) or MODERN not in _texts(result.get("supportedVersions")):
        raise _NotModern
    info = _object(_object(result.get("_meta")).get(f"{_META}serverInfo"))
    found = Result("ok", "", MODERN, 0.0, _text(info.get("name")), _text(info.get("version")))
    return await _deep(talk, found) if talk.target.deep else found


async def _legacy(talk: _Talk) -> Result:
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
    reply = await talk.post("initialize", params)
    answer = talk.answer(reply)
    result = answer.get("result")
    if reply.status != 200:
        raise _Verdict("error", f"HTTP {reply.status}")
    if not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), str):
        raise _Verdict("error", _rpc_error(answer))
    info, version = _object(result.get("serverInfo")), result["protocolVersion"]
    found = Result("ok", "", LEGACY, 0.0, _text(info.get("name")), _text(info.get("version")))
    if version not in _LEGACY_VERSIONS:
        return replace(found, state="degraded", reason=f"answers with protocol version {_text(version)!r}")
    talk.version = version
    if not talk.target.deep:
        return found
    await talk.notify("notifications/initialized")
    return await _deep(talk, found)


async def _deep(talk: _Talk, found: Result) -> Result:
    era = MODERN if found.era == MODERN else ""
    reply = await talk.post("tools/call", {"name": health.TOOL, "arguments": {}}, era=era, name=health.TOOL)
    answer = talk.answer(reply)
    result = _object(answer.get("result"))
    content = result.get("content")
    first = _object(content[0]) if isinstance(content, list) and content else {}
    text = first["text"] if isinstance(first.get("text"), str) else ""
    missing = result.get("isError") and any(words in text.lower() for words in ("unknown tool", "not found"))
    if missing or _object(answer.get("error")).get("code") in _NO_SUCH_TOOL:
        return replace(found, reason=f"reachable; no {health.TOOL} tool")
    if result.get("isError"):
        return replace(found, state="degraded", reason=f"{health.TOOL} failed: {_text(text) or 'no reason given'}")
    said = _said(text)
    if said is None:
        return replace(found, state="degraded", reason=f"{health.TOOL} gave no valid answer")
    state, message = said
    return replace(found, state=state, reason=message or ("" if state == "ok" else f"{health.TOOL} says {state}"))


def _said(text: str) -> tuple[health.Status, str] | None:
    try:
        said = health.parse(text)
    except RecursionError:
        return None
    return said and (said[0], _text(said[1]))


class _Talk:
    """The requests of one probe to one server."""

    def __init__(self, target: Target, request: Request) -> None:
        self.target, self._request, self._id = target, request, 0
        self.session = ""
        self.version = LEGACY

    async def post(self, method: str, params: dict[str, Any], *, era: str = "", name: str = "") -> http.Reply:
        """POST one JSON-RPC request.

        Raises:
            _Verdict: the status says that no other question will be answered either (401, 403, 429, 5xx, 3xx).
        """
        self._id += 1
        headers = self._headers()
        if era:
            headers |= {"mcp-protocol-version": era, "mcp-method": method} | ({"mcp-name": name} if name else {})
            meta = {f"{_META}protocolVersion": era, f"{_META}clientCapabilities": {}, f"{_META}clientInfo": _CLIENT}
            params = {**params, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode()
        reply = await self._send("POST", headers, body, enough=self._complete)
        if reply.status in (401, 403):
            raise _Verdict("unauthenticated", f"reachable, needs credentials (HTTP {reply.status})")
        if reply.status == 429:
            raise _Verdict("degraded", "asked to slow down (HTTP 429)")
        if reply.status == 421:
            raise _Verdict("error", "refuses this Host header (HTTP 421)")
        if reply.status >= 500 or 300 <= reply.status < 400:
            raise _Verdict("error", f"HTTP {reply.status}")
        return reply

    async def notify(self, method: str) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method}).encode()
        await self._send("POST", self._headers(), body)

    async def leave(self) -> None:
        """Tear down the session, if one was opened (seed 000, Implementation Guidance). A server may refuse.

        Bounded on its own: it also runs after the probe's deadline has passed.
        """
        if not self.session:
            return
        headers, self.session = self._headers(), ""
        with contextlib.suppress(http.Unreachable, TimeoutError):
            async with asyncio.timeout(_GOODBYE):
                await self._send("DELETE", headers)

    def answer(self, reply: http.Reply) -> dict[str, Any]:
        """The JSON-RPC answer to the last request; empty when there is none. Only an error may come without its id."""
        texts = _events(reply.body) if _is_stream(reply) else [reply.body]
        for text in texts:
            try:
                message = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if not isinstance(message, dict):
                continue
            if "result" in message and message.get("id") == self._id:
                return message
            if "error" in message and message.get("id") in (self._id, None):
                return message
        return {}

    def _complete(self, reply: http.Reply) -> bool:
        # noted as soon as the headers are there: the body may never end, and then nobody would close the session
        self.session = self.session or reply.headers.get("mcp-session-id", "")
        return _is_stream(reply) and bool(self.answer(reply))

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {key.lower(): value for key, value in self.target.headers.items()}
        if self.session:
            headers |= {"mcp-session-id": self.session, "mcp-protocol-version": self.version}
        return headers

    async def _send(self, method: str, headers: dict[str, str], body: bytes = b"", **options: Any) -> http.Reply:
        return await self._request(
            method, self.target.url, headers=headers, body=body, address=self.target.address, **options
        )


def _is_stream(reply: http.Reply) -> bool:
    return reply.headers.get("content-type", "").startswith("text/event-stream")


def _events(body: bytes) -> list[bytes]:
    """The data of each complete server-sent event."""
    blocks = body.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]
    return [
        b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")) for block in blocks
    ]


def _rpc_error(answer: dict[str, Any]) -> str:
    code = _object(answer.get("error")).get("code")
    return _text(f"JSON-RPC error {code}") if isinstance(code, int) else "not an MCP answer"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Foreign text fit to be shown: bounded, and encodable (JSON may carry half of a surrogate pair)."""
    return value[:_MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
