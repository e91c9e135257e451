"""The registry's document as a whole (seed 000 section 1, seed 001 Registry Server)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pallas_testing.conformance.evidence import Catalogue, connectable
from pallas_testing.conformance.requirement import Table, demand, not_asked
from pallas_testing.conformance.session import ERAS, spoken
from pallas_testing.conformance.wire import Exchange

TABLE: Table[Catalogue] = Table()
_ABSENT = "nobody answers at"
_OFFICIAL = "io.modelcontextprotocol.registry/official"


@TABLE.row("registry.open", "000, 1 Registry, Request", "a plain GET gets it, without credentials")
def open_to_all(evidence: Catalogue) -> str:
    demand(evidence.document.status == 200, evidence.document, "HTTP 200 to a GET without credentials")
    return ""


@TABLE.row(
    "registry.content-type", "000, 1 Registry, Behaviour", "the document is application/json", after="registry.open"
)
def content_type(evidence: Catalogue) -> str:
    demand(evidence.document.media_type == "application/json", evidence.document, "content-type: application/json")
    return ""


@TABLE.row("registry.servers", "000, 1 Registry, Schema", "`servers` is the array of entries", after="registry.open")
def servers(evidence: Catalogue) -> str:
    entries = evidence.document.messages[-1].get("servers") if evidence.document.messages else None
    demand(isinstance(entries, list), evidence.document, '{"servers": [...]}')
    for number, entry in enumerate(entries or ()):
        whole = isinstance(entry, dict) and isinstance(entry.get("server"), dict)
        demand(whole, evidence.document, 'an object with an object "server"', f"servers[{number}]: {entry!r}")
    return "" if entries else "it is empty: nothing to judge in it"


@TABLE.row(
    "registry.unique",
    "000, 1 Registry, Schema",
    "a client derives the server's id from the name",
    after="registry.servers",
)
def unique(evidence: Catalogue) -> str:
    names = [str(entry["server"].get("name")) for entry in evidence.document.messages[-1]["servers"]]
    counts = Counter(name.rpartition("/")[2] for name in names)
    several = sorted(server_id for server_id, count in counts.items() if count > 1)
    right = "another segment after the last slash for each server"
    demand(not several, evidence.document, right, f"several servers are {', '.join(several)}")
    return ""


@TABLE.row(
    "registry.meta", "001, Response Structure", "metadata of the registry is an object", after="registry.servers"
)
def meta(evidence: Catalogue) -> str:
    right = "an object; of its official part `status` a string, `updatedAt` ISO 8601, `isLatest` a bool"
    for number, entry in enumerate(evidence.document.messages[-1]["servers"]):
        value = entry.get("_meta", {})
        official = value.get(_OFFICIAL, {}) if isinstance(value, dict) else None
        typed = isinstance(official, dict) and _is_official(official)
        demand(typed, evidence.document, right, f"servers[{number}]._meta: {value!r}")
    return ""


def _is_official(value: dict[str, Any]) -> bool:
    status = value.get("status", "")
    return isinstance(status, str) and isinstance(value.get("isLatest", True), bool) and _is_time(value)


def _is_time(value: dict[str, Any]) -> bool:
    try:
        return "updatedAt" not in value or bool(datetime.fromisoformat(value["updatedAt"]))
    except (ValueError, TypeError):
        return False


@TABLE.row(
    "registry.endpoints",
    "000, 1 Registry, Behaviour",
    "each streamable-http URL is an MCP endpoint",
    after="registry.servers",
    decision="0009",
)
def endpoints(evidence: Catalogue) -> str:
    states = {url: _state(url, openings) for url, openings in evidence.endpoints.items()}
    for entry in evidence.document.messages[-1]["servers"]:
        urls = connectable(entry["server"])
        if urls and all(states[url] == _ABSENT for url in urls):
            not_asked(f"{_ABSENT} {', '.join(urls)}: an agent that is down, or out of reach from here")
    return "; ".join(f"{state} {url}" for url, state in states.items() if state)


def _state(url: str, openings: Sequence[Exchange]) -> str:
    """Return a remark on an endpoint, empty for one that speaks MCP."""
    if any(spoken(era, opening) for era, opening in zip(ERAS, openings, strict=True)):
        return ""
    if any(opening.status in (401, 403) for opening in openings):
        return "a token is asked for at"
    demand(all(opening.failure for opening in openings), openings[0], f"an answer of MCP at {url}")
    return _ABSENT
