"""A URL -> what it is, what was collected there, and a finding for each requirement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urljoin, urlsplit

import httpx

from pallas_testing.conformance import evidence
from pallas_testing.conformance.evidence import DOCUMENT, Turn
from pallas_testing.conformance.requirement import Finding, judge
from pallas_testing.conformance.rows import table
from pallas_testing.conformance.session import ERAS, Era, Session
from pallas_testing.conformance.wire import Wire, printable

Kind = Literal["agent", "registry"]
TIMEOUT = 120.0
"""Seconds without a message after which an answer counts as none; a turn may take long."""
_CONNECT = 10.0
_MCP = "/mcp"


class NobodyThere(Exception):
    """Neither an agent nor a registry answers at the URL; the text says what did."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to judge. `eras` are those that an agent has to speak; without any, one is enough.

    `turn` has a model asked. `model_requests` counts the requests that reached it. `token` is a bearer token.
    """

    url: str
    kind: Kind | None = None
    eras: Sequence[Era] = ()
    turn: Turn | None = None
    model_requests: Callable[[], int] | None = None
    token: str = ""
    timeout: float = TIMEOUT


@dataclass(frozen=True, slots=True)
class Report:
    """The findings about one server, in the order of the table."""

    url: str
    kind: Kind
    findings: Sequence[Finding]

    def of(self, verdict: str) -> list[Finding]:
        """Return the findings with this verdict."""
        return [finding for finding in self.findings if finding.verdict == verdict]

    @property
    def conformant(self) -> bool:
        """True where no requirement is broken."""
        return not self.of("broken")


async def check(
    question: Question,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Report:
    """Return the verdict on each requirement that applies.

    Raises:
        NobodyThere: it has to find out by itself what is at the URL, and it is neither.
    """
    timeout = httpx.Timeout(question.timeout, connect=min(_CONNECT, question.timeout))
    async with httpx.AsyncClient(timeout=timeout, transport=transport, trust_env=False) as client:

        def wire(url: str, token: str = "") -> Wire:
            return Wire(client, url, token=token, clock=clock)

        kind = question.kind or await _kind(wire(question.url))
        if kind == "registry":
            catalogue = await evidence.of_registry(
                wire(question.url), lambda url: [Session(wire(url), era) for era in ERAS]
            )
            return Report(question.url, kind, judge(table.REGISTRY, catalogue))
        url = endpoint(question.url)
        return Report(url, kind, await _agent(question, wire(url, question.token)))


async def _agent(question: Question, wire: Wire) -> list[Finding]:
    agents = [await evidence.of_agent(Session(wire, era), question.turn, question.model_requests) for era in ERAS]
    some = any(agent.spoken for agent in agents)
    findings = judge(table.PAGES, await evidence.of_pages(wire))
    for agent in agents:
        demanded = agent.era in question.eras if some else True
        findings += judge(table.AGENT, replace(agent, demanded=demanded), agent.era)
    return findings


async def _kind(wire: Wire) -> Kind:
    """Return what is at a URL: one with a path is an agent's endpoint, unless it is that of the catalogue."""
    path = urlsplit(wire.url).path
    if path not in ("", "/"):
        return "registry" if path == DOCUMENT else "agent"
    document = await wire.get(DOCUMENT, "application/json")
    body = document.messages[-1] if document.messages else {}
    if isinstance(body.get("servers"), list) and not _is_own_entry(wire.url, evidence.remotes(document)):
        return "registry"
    if any([await _opening(wire, era) for era in ERAS]):
        return "agent"
    received = printable(document.received)
    raise NobodyThere(
        f"{wire.url}: neither a registry nor an agent answers here\n    GET {DOCUMENT}: {received}\n"
        "    start it, give the URL with /mcp, or say what it has to be with --kind"
    )


async def _opening(wire: Wire, era: Era) -> bool:
    session = Session(wire.beside(_MCP), era)
    opening = await session.open()
    await session.close()
    return bool(opening.answer) or opening.status in (401, 403)


def _is_own_entry(url: str, remotes: Sequence[str]) -> bool:
    """Return True for the document that an agent of the kit has of itself: one endpoint, on the port that was asked."""
    if len(remotes) != 1:
        return False
    try:
        remote = httpx.URL(remotes[0])
    except httpx.InvalidURL:
        return False
    asked = httpx.URL(url)
    return remote.path == _MCP and (remote.scheme, remote.port) == (asked.scheme, asked.port)


def endpoint(url: str) -> str:
    """Return the MCP endpoint of an agent, which a URL without a path leaves away."""
    return urljoin(url, _MCP) if urlsplit(url).path in ("", "/") else url
