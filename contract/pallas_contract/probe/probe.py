"""The MCP prober: one set of questions for registry, runtime, container healthcheck and `pallas-gen probe`.

It only POSTs. The current era (2026-07-28) is asked with `server/discover`, which is stateless; a server that does
not know it is asked with `initialize`, and the session that opens is deleted again: no probe leaves anything behind.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pallas_contract import names
from pallas_contract.documents import health
from pallas_contract.documents.health import State
from pallas_contract.documents.reason import OK, Reason, reported
from pallas_contract.documents.tool_contract import ToolContract, tool_contract
from pallas_contract.probe import http_client, listing, plain
from pallas_contract.probe.session import (
    ASIDE,
    CLIENT,
    LEGACY,
    META,
    MODERN,
    NOT_MCP,
    Bound,
    ProbeEnded,
    Session,
    Target,
    as_object,
    as_text,
    as_texts,
    has_endpoint,
    rpc_error,
)

__all__ = ["LEGACY", "MODERN", "PAUSE", "TIMEOUT", "Bound", "Line", "Result", "Target", "patience", "probe"]

_LEGACY_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", LEGACY})

TIMEOUT = names.PROBE_TIMEOUT
PAUSE = 0.25
"""Seconds between a failed probe and its confirmation."""
CONFIRM_TIMEOUT = 1.0
"""Least seconds that a confirmation is given; `patience` gives who is always slow more."""
SLOWER = 1.5
"""By how much a confirmation may take longer than the answer before."""
_NO_SUCH_TOOL = (-32601, -32602)
"""JSON-RPC: unknown method (a server without tools), invalid parameters (a server without this tool)."""

_NO_TOOL = Reason("NoHealthTool", f"reachable; no {health.TOOL} tool")
_INVALID_HEALTH = Reason("InvalidHealth", f"{health.TOOL} gave no valid answer")

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a probe. `latency` in seconds; `era` empty when it is not known.

    `tools` maps the name of each tool to its contract, None when they were not told; `listed` is when they were asked
    for, in seconds of the probe's clock. `brief` says that the health alone was asked for, on a connection of before.
    """

    state: State
    reason: Reason = OK
    era: str = ""
    latency: float = 0.0
    name: str = ""
    version: str = ""
    tools: Mapping[str, ToolContract] | None = None
    listed: float | None = None
    status: int = 0
    wait: float = 0.0
    brief: bool = False
    failed: str = ""
    """The method that failed after a good handshake."""

    @property
    def reachable(self) -> bool:
        """True when others can count on it now: a 503 is an answer, but no help (seed 000: an HTTP error is none)."""
        return self.state in ("ok", "degraded", "unauthenticated") and self.status != 503


class Line:
    """A connection to one target that outlives a probe, and what was found on it.

    Who answers on it is who answered before, so the next probe asks for the health alone: one request instead of two,
    and no handshake of TCP or TLS. It is kept while all is well and the target speaks the era without sessions; else,
    and once the target has closed it, a probe is a whole one on a connection of its own.
    """

    __slots__ = ("client", "known")

    def __init__(self) -> None:
        self.client: http_client.Client | None = None
        self.known: Result | None = None
        """The result of the last probe; None where the connection may not be used again."""

    @property
    def kept(self) -> bool:
        """True where the next probe can use it."""
        return self.known is not None and self.client is not None and self.client.kept

    def close(self) -> None:
        """Drop the connection; the next probe opens another."""
        self.known = None
        if self.client is not None:
            self.client.close()


class _NotLegacy(ProbeEnded):
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
    line: Line | None = None,
) -> Result:
    """Probe once; never raises for anything the server does. `era` is the one of an earlier result, tried first.

    `line` is the connection to use, and to leave open where it can be used once more; without it none is left.
    """
    started = clock()
    if target.plain:
        return replace(await _probe_within(_plain(target), era, timeout, bound), latency=clock() - started)
    held = line or Line()
    try:
        held.client = held.client or http_client.Client(target.url, target.address)
    except ValueError as error:
        return Result("error", Reason("InvalidRequest", str(error)), era)
    known = held.known if held.kept else None
    held.known = None
    session = Session(target, held.client, keep=line is not None)
    try:
        asking = _ask_again(session, known) if known else _ask_or_read_page(session, era)
        result = replace(await _probe_within(asking, era, timeout, bound), latency=clock() - started)
        if target.lists and result.era and result.state == "ok":
            ended = await listing.refusal(session, MODERN if result.era == MODERN else "", bound)
            if ended:
                result = replace(_ended(ended, result), latency=clock() - started, failed=ended.method)
        if target.tools and result.era and result.state in ("ok", "degraded") and not result.status:
            result = replace(result, tools=await _tools(session, result), listed=clock())
        if line is not None and result.state == "ok" and result.era == MODERN:
            held.known = result
        return result
    finally:
        await session.close()
        if not held.kept:
            held.close()


def patience(before: Result | None) -> float:
    """Return the seconds that a confirmation may take: as long as it took when all was well, and half of it more."""
    usual = before.latency * (2 if before.brief else 1) if before is not None else 0.0  # it asks two questions
    return min(max(CONFIRM_TIMEOUT, SLOWER * usual), TIMEOUT)


async def _probe_within(asking: Awaitable[Result], era: str, timeout: float, bound: Bound) -> Result:
    try:
        async with bound(timeout):
            return await asking
    except ProbeEnded as ended:
        return _ended(ended, Result(ended.state, era=era))
    except TimeoutError:
        return Result("error", Reason("NoAnswer", f"no answer in {timeout:g} s"), era)
    except http_client.Unreachable as error:
        return Result("error", error.reason, era)
    except ValueError as error:
        return Result("error", Reason("InvalidRequest", str(error)), era)


def _ended(ended: ProbeEnded, known: Result) -> Result:
    return replace(known, state=ended.state, reason=ended.reason, status=ended.status, wait=ended.wait)


async def _plain(target: Target) -> Result:
    await plain.ask(target)
    return Result("ok")


async def _ask_or_read_page(session: Session, era: str) -> Result:
    """Ask over MCP; an agent of ours that asks for a token says the same on a page that does not."""
    try:
        return await _ask(session, era)
    except ProbeEnded as ended:
        if ended.state != "unauthenticated" or not session.target.ours:
            raise
        response = await session.page(names.HEALTH_PATH)
        reported_health = _health(response.body.decode("utf-8", "replace"))
        if reported_health is None:
            raise
        body = json.loads(response.body)
        return replace(reported_health, name=as_text(body.get("name")), version=as_text(body.get("version")))


async def _ask_again(session: Session, known: Result) -> Result:
    """Ask for the health alone, of whom `known` was found; all of it where the connection is no longer there."""
    reached = Result("ok", era=MODERN, name=known.name, version=known.version)
    try:
        return replace(await _deep(session, reached, again=True), brief=True)
    except http_client.Closed:
        return await _ask_or_read_page(session, known.era)


async def _ask(session: Session, era: str) -> Result:
    if session.target.sse:
        return await _sse(session)
    if era == LEGACY:
        try:
            return await _legacy(session)
        except _NotLegacy:
            await session.close()
    try:
        return await _modern(session)
    except _NotModern:
        await session.close()  # some servers open a session for any first request, even one they refuse
        return await _legacy(session)


async def _sse(session: Session) -> Result:
    """Open the stream of a server of HTTP with SSE (2024-11-05): an event says where messages are posted to.

    Nothing is posted there, so nothing is initialized; the server forgets the stream once the connection is gone.
    """
    response = await session.stream()
    if response.status != 200:
        raise ProbeEnded("error", Reason("HttpError", f"HTTP {response.status}"))
    if not has_endpoint(response):
        raise ProbeEnded("error", NOT_MCP)
    return Result("ok")


async def _modern(session: Session) -> Result:
    response = await session.post(
        "server/discover", {}, era=MODERN, last=not (session.target.deep or session.target.lists)
    )
    answer = session.answer(response)
    result = answer.get("result")
    # Servers of the era before refuse an unknown method in many ways: HTTP 400 or 404, an error, another result.
    if (
        response.status >= 400
        or not isinstance(result, dict)
        or MODERN not in as_texts(result.get("supportedVersions"))
    ):
        raise _NotModern
    session.capabilities = as_object(result.get("capabilities"))
    reached = _named(Result("ok", era=MODERN), result)
    return await _deep(session, reached) if session.target.deep else reached


async def _legacy(session: Session) -> Result:
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
    response = await session.post("initialize", params)
    answer = session.answer(response)
    result = answer.get("result")
    if response.status != 200:
        raise _NotLegacy("error", Reason("HttpError", f"HTTP {response.status}"))
    if not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), str):
        raise _NotLegacy("error", rpc_error(answer))
    info = as_object(result.get("serverInfo"))
    version = result["protocolVersion"]
    reached = Result("ok", era=LEGACY, name=as_text(info.get("name")), version=as_text(info.get("version")))
    if version not in _LEGACY_VERSIONS:
        reason = Reason("UnknownProtocolVersion", f"answers with protocol version {as_text(version)!r}")
        return replace(reached, state="degraded", reason=reason)
    session.version = version
    session.capabilities = as_object(result.get("capabilities"))
    if not session.target.deep:
        return reached
    # Before this a server of 2025-11-25 may refuse any other request (Lifecycle).
    await session.notify("notifications/initialized")
    return await _deep(session, reached)


async def _deep(session: Session, reached: Result, *, again: bool = False) -> Result:
    era = MODERN if reached.era == MODERN else ""
    params = {"name": health.TOOL, "arguments": {}}
    last = not session.target.tools
    response = await session.post("tools/call", params, era=era, name=health.TOOL, last=last, again=again)
    answer = session.answer(response)
    result = as_object(answer.get("result"))
    if again:
        reached = _named(reached, result)
    content = result.get("content")
    first = as_object(content[0]) if isinstance(content, list) and content else {}
    text = first["text"] if isinstance(first.get("text"), str) else ""
    says_unknown = health.TOOL in text and any(words in text.lower() for words in ("unknown tool", "not found"))
    missing = result.get("isError") and says_unknown  # not any error with these words: it may be the agent's own
    if missing or as_object(answer.get("error")).get("code") in _NO_SUCH_TOOL:
        return replace(reached, reason=_NO_TOOL)
    if result.get("isError"):
        failed = Reason("HealthToolFailed", f"{health.TOOL} failed: {as_text(text) or 'no reason given'}")
        return replace(reached, state="degraded", reason=failed)
    reported_health = _health(text)
    if reported_health is None:
        return replace(reached, state="degraded", reason=_INVALID_HEALTH)
    return replace(reached, state=reported_health.state, reason=reported_health.reason)


async def _tools(session: Session, reached: Result) -> Mapping[str, ToolContract] | None:
    """Return the tools of the first page, None when they cannot be had.

    Bounded on its own, so that a long list never makes an agent look ill.
    """
    era = MODERN if reached.era == MODERN else ""
    try:
        async with asyncio.timeout(ASIDE):
            answer = session.answer(await session.post("tools/list", {}, era=era, last=True))
    except (ProbeEnded, http_client.Unreachable, ValueError, TimeoutError):
        return None
    entries = as_object(answer.get("result")).get("tools")
    if not isinstance(entries, list):
        return None
    tools = [as_object(entry) for entry in entries]
    return {as_text(tool["name"]): tool_contract(tool) for tool in tools if isinstance(tool.get("name"), str)}


def _named(reached: Result, result: Mapping[str, Any]) -> Result:
    """Return `reached` with the name and version that an answer of 2026-07-28 gives, as each of them should."""
    info = as_object(as_object(result.get("_meta")).get(f"{META}serverInfo"))
    if not info:
        return reached
    return replace(reached, name=as_text(info.get("name")), version=as_text(info.get("version")))


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
