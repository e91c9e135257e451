"""The MCP prober: one set of questions for registry, runtime, container healthcheck and `pallas-gen probe`.

It only POSTs. The current era (2026-07-28) is asked with `server/discover`, which is stateless; a server that does
not know it is asked with `initialize`, and the session that opens is deleted again: no probe leaves anything behind.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from pallas_contract import names
from pallas_contract.documents import health
from pallas_contract.documents.health import State
from pallas_contract.documents.reason import OK, Reason, reported
from pallas_contract.probe import http_client
from pallas_contract.probe.session import (
    ASIDE,
    CLIENT,
    LEGACY,
    META,
    MODERN,
    Finding,
    Talk,
    Target,
    as_object,
    as_text,
    as_texts,
)

__all__ = ["LEGACY", "MODERN", "PAUSE", "TIMEOUT", "Bound", "Result", "Target", "patience", "probe"]

_LEGACY_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", LEGACY})

TIMEOUT = 3.0
"""Seconds for a whole probe, all its requests together (seed 000: 3 seconds per downstream probe)."""
PAUSE = 0.25
"""Seconds between a failed probe and its confirmation."""
CONFIRM_TIMEOUT = 1.0
"""Least seconds that a confirmation is given; `patience` gives who is always slow more."""
SLOWER = 1.5
"""By how much a confirmation may take longer than the answer before."""
_NO_SUCH_TOOL = (-32601, -32602)
"""JSON-RPC: unknown method (a server without tools), invalid parameters (a server without this tool)."""

_NOT_MCP = Reason("NotMcp", "not an MCP answer")
_NO_TOOL = Reason("NoHealthTool", f"reachable; no {health.TOOL} tool")
_INVALID_HEALTH = Reason("InvalidHealth", f"{health.TOOL} gave no valid answer")

Clock = Callable[[], float]
Bound = Callable[[float], AbstractAsyncContextManager[object]]
"""Raises TimeoutError in what it surrounds once so many seconds have passed."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a probe found. `latency` in seconds; `era` empty when it is not known.

    `tools` maps the name of each tool to a digest of its input schema, None when they were not told; `listed` is when
    they were asked for, in seconds of the probe's clock.
    """

    state: State
    reason: Reason = OK
    era: str = ""
    latency: float = 0.0
    name: str = ""
    version: str = ""
    tools: Mapping[str, str] | None = None
    listed: float | None = None
    status: int = 0
    wait: float = 0.0

    @property
    def reachable(self) -> bool:
        """Whoever needs it can count on it now: a 503 is an answer, but no help (seed 000: an HTTP error is none)."""
        return self.state in ("ok", "degraded", "unauthenticated") and self.status != 503


class _NotLegacy(Finding):
    """The server did not answer `initialize` as one that knows it."""


class _NotModern(Exception):
    """The server answered as one that does not know `server/discover`."""


async def probe(
    target: Target,
    *,
    era: str = "",
    timeout: float = TIMEOUT,
    clock: Clock = time.monotonic,
    bound: Bound = asyncio.timeout,
) -> Result:
    """Probe once; never raises for anything the server does. `era` is what an earlier probe found, tried first."""
    started = clock()
    try:
        client = http_client.Client(target.url, target.address)
    except ValueError as error:
        return Result("error", Reason("InvalidRequest", str(error)), era)
    async with client:
        talk = Talk(target, client)
        try:
            result = replace(await _bounded(talk, era, timeout, bound), latency=clock() - started)
            if target.tools and result.era and result.state in ("ok", "degraded") and not result.status:
                result = replace(result, tools=await _tools(talk, result), listed=clock())
            return result
        finally:
            await talk.leave()


def patience(before: Result | None) -> float:
    """Seconds that a confirmation may take: as long as it took when all was well, and half of it more."""
    usual = before.latency if before is not None else 0.0
    return min(max(CONFIRM_TIMEOUT, SLOWER * usual), TIMEOUT)


async def _bounded(talk: Talk, era: str, timeout: float, bound: Bound) -> Result:
    try:
        async with bound(timeout):
            return await _ask_or_read(talk, era)
    except Finding as verdict:
        return Result(verdict.state, verdict.reason, era, status=verdict.status, wait=verdict.wait)
    except TimeoutError:
        return Result("error", Reason("NoAnswer", f"no answer in {timeout:g} s"), era)
    except http_client.Unreachable as error:
        return Result("error", error.reason, era)
    except ValueError as error:
        return Result("error", Reason("InvalidRequest", str(error)), era)


async def _ask_or_read(talk: Talk, era: str) -> Result:
    """What the agent says over MCP; one of ours that asks for a token says the same on a page that does not."""
    try:
        return await _ask(talk, era)
    except Finding as verdict:
        if verdict.state != "unauthenticated" or not talk.target.ours:
            raise
        reply = await talk.page(names.HEALTH_PATH)
        health_result = _health(reply.body.decode("utf-8", "replace"))
        if health_result is None:
            raise
        body = json.loads(reply.body)
        return replace(health_result, name=as_text(body.get("name")), version=as_text(body.get("version")))


async def _ask(talk: Talk, era: str) -> Result:
    if era == LEGACY:
        try:
            return await _legacy(talk)
        except _NotLegacy:
            await talk.leave()
    try:
        return await _modern(talk)
    except _NotModern:
        await talk.leave()  # some servers open a session for any first request, even one they refuse
        return await _legacy(talk)


async def _modern(talk: Talk) -> Result:
    reply = await talk.post("server/discover", {}, era=MODERN, last=not talk.target.deep)
    answer = talk.answer(reply)
    result = answer.get("result")
    if reply.status >= 400 or not isinstance(result, dict) or MODERN not in as_texts(result.get("supportedVersions")):
        raise _NotModern
    info = as_object(as_object(result.get("_meta")).get(f"{META}serverInfo"))
    found = Result("ok", era=MODERN, name=as_text(info.get("name")), version=as_text(info.get("version")))
    return await _deep(talk, found) if talk.target.deep else found


async def _legacy(talk: Talk) -> Result:
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
    reply = await talk.post("initialize", params)
    answer = talk.answer(reply)
    result = answer.get("result")
    if reply.status != 200:
        raise _NotLegacy("error", Reason("HttpError", f"HTTP {reply.status}"))
    if not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), str):
        raise _NotLegacy("error", _rpc_error(answer))
    info, version = as_object(result.get("serverInfo")), result["protocolVersion"]
    found = Result("ok", era=LEGACY, name=as_text(info.get("name")), version=as_text(info.get("version")))
    if version not in _LEGACY_VERSIONS:
        reason = Reason("UnknownProtocolVersion", f"answers with protocol version {as_text(version)!r}")
        return replace(found, state="degraded", reason=reason)
    talk.version = version
    if not talk.target.deep:
        return found
    await talk.notify("notifications/initialized")
    return await _deep(talk, found)


async def _deep(talk: Talk, found: Result) -> Result:
    era = MODERN if found.era == MODERN else ""
    params = {"name": health.TOOL, "arguments": {}}
    reply = await talk.post("tools/call", params, era=era, name=health.TOOL, last=not talk.target.tools)
    answer = talk.answer(reply)
    result = as_object(answer.get("result"))
    content = result.get("content")
    first = as_object(content[0]) if isinstance(content, list) and content else {}
    text = first["text"] if isinstance(first.get("text"), str) else ""
    said_missing = health.TOOL in text and any(words in text.lower() for words in ("unknown tool", "not found"))
    missing = result.get("isError") and said_missing  # not any error with these words: it may be the agent's own
    if missing or as_object(answer.get("error")).get("code") in _NO_SUCH_TOOL:
        return replace(found, reason=_NO_TOOL)
    if result.get("isError"):
        failed = Reason("HealthToolFailed", f"{health.TOOL} failed: {as_text(text) or 'no reason given'}")
        return replace(found, state="degraded", reason=failed)
    health_result = _health(text)
    if health_result is None:
        return replace(found, state="degraded", reason=_INVALID_HEALTH)
    return replace(found, state=health_result.state, reason=health_result.reason)


async def _tools(talk: Talk, found: Result) -> Mapping[str, str] | None:
    """The tools of the first page. Bounded on its own, so that a long list never makes an agent look ill."""
    era = MODERN if found.era == MODERN else ""
    try:
        async with asyncio.timeout(ASIDE):
            listed = as_object(talk.answer(await talk.post("tools/list", {}, era=era, last=True)).get("result")).get(
                "tools"
            )
    except (Finding, http_client.Unreachable, ValueError, TimeoutError):
        return None
    if not isinstance(listed, list):
        return None
    tools = (as_object(tool) for tool in listed)
    return {
        as_text(tool["name"]): _digest(tool.get("inputSchema")) for tool in tools if isinstance(tool.get("name"), str)
    }


def _digest(schema: Any) -> str:
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:8]


def _health(text: str) -> Result | None:
    """Return state and reason of a `get_health` answer; None when it is not one."""
    try:
        answer = health.parse(text)
    except RecursionError:
        return None
    if answer is None:
        return None
    status, message = answer
    reason = reported(message, well=status == "ok")  # of the whole text: the cut may go through a name
    text = as_text(message) or ("" if status == "ok" else f"{health.TOOL} says {status}")
    return Result(status, replace(reason, message=text))


def _rpc_error(answer: dict[str, Any]) -> Reason:
    code = as_object(answer.get("error")).get("code")
    return Reason("JsonRpcError", as_text(f"JSON-RPC error {code}")) if isinstance(code, int) else _NOT_MCP
