"""What is said about the agents, as ready bytes: made once per change, served as they are, one truth in each face."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pallas_contract import names
from pallas_contract.documents import registry_api, server_card, server_json
from pallas_contract.documents.health import timestamp
from pallas_contract.launch import addresses
from pallas_registry.catalogue.registry_api import Listed, Listing
from pallas_registry.fleet_file import Loaded
from pallas_registry.registration.leases import Registration
from pallas_registry.serving.documents import Document
from pallas_registry.state.status import Verdict

PATH = "/.well-known/mcp/server.json"
CARDS = "/server-cards/"
BRIEFLY = "public, max-age=60"
"""Cards change with the file only; a client may keep one for a minute."""
KEEP_REMOVED = 1000
"""Most removed agents that the registry API still tells about."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the file says of an agent, or the agent of itself when it registered: the same until it is read again."""

    server: dict[str, Any]
    strict: dict[str, Any]
    registration: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    facts: _Facts
    verdict: Verdict
    published: datetime
    dated: datetime
    """The `updatedAt` of the seed's document."""
    judged: bool
    """Whether it was ever in a state other than unknown."""
    body: bytes
    listed: Listed


class Catalogue:
    """The documents about agents: the seed's (000 section 1), the registry API's, and cards with their catalogue."""

    def __init__(self, *, now: Callable[[], datetime], placement: addresses.Placement) -> None:
        self._now, self._placement = now, placement
        self._loaded: Loaded | None = None
        self._registered: Sequence[Registration] = ()
        self._facts: dict[str, _Facts] = {}
        self._entries: dict[str, _Entry] = {}
        self._removed: dict[str, Listed] = {}
        self._documents: dict[str, Document] = {PATH: Document(b'{"servers":[]}')}
        self._listing = Listing()

    @property
    def document(self) -> Document:
        """The seed's."""
        return self._documents[PATH]

    def find(self, method: str, path: str, query: bytes) -> Document | None:
        """The document of a path, whatever the face (prebuilt.Find)."""
        return self.kept(path) or self._listing.find(method, path, query)

    def kept(self, path: str) -> Document | None:
        """The document of a path if it is not a page of the registry API, which are joined when asked for."""
        return self._documents.get(path)

    def publish(
        self, loaded: Loaded, verdict: Callable[[str], Verdict], registered: Sequence[Registration] = ()
    ) -> None:
        """Bring the documents up to date. An entry that says the same as before keeps its `updatedAt`."""
        reread = loaded is not self._loaded or registered is not self._registered
        if reread:
            self._read(loaded, registered)
        entries = {agent: self._entry(agent, facts, verdict(agent)) for agent, facts in self._facts.items()}
        if reread:
            self._bury(entries)
        elif all(entry is self._entries.get(agent) for agent, entry in entries.items()):
            return
        self._entries = entries
        body = b'{"servers":[' + b",".join(entry.body for entry in entries.values()) + b"]}"
        if body != self.document.body:
            self._documents[PATH] = Document(body)
        self._listing = Listing([*(entry.listed for entry in entries.values()), *self._removed.values()])

    def _read(self, loaded: Loaded, registered: Sequence[Registration]) -> None:
        self._loaded, self._registered, self._facts = loaded, registered, {}
        for agent in loaded.fleet.agents:
            server = server_json.server(loaded.fleet, agent, loaded.capabilities, self._placement)
            public = addresses.agent_url(loaded.fleet, agent, self._placement)
            self._facts[agent] = _Facts(server, registry_api.server(server, public))
        for each in registered:
            server = server_json.registered(loaded.fleet, each.params.model_dump())
            self._facts[each.agent] = _Facts(server, registry_api.server(server, each.params.url), _registration(each))
        home = addresses.public_url(loaded.fleet, names.REGISTRY, loaded.fleet.registry_port)
        made = {f"{CARDS}{names.slug(agent)}": server_card.card(facts.strict) for agent, facts in self._facts.items()}
        catalog = server_card.catalog((card, home + path) for path, card in made.items())
        self._documents = {
            PATH: self.document,
            server_card.CATALOG_PATH: Document(_dump(catalog), server_card.CATALOG_TYPE, cache=BRIEFLY),
            **{path: Document(_dump(card), server_card.CARD_TYPE, cache=BRIEFLY) for path, card in made.items()},
        }

    def _entry(self, agent: str, facts: _Facts, verdict: Verdict) -> _Entry:
        before, now = self._entries.get(agent), self._now()
        if before is not None and (before.facts, before.verdict) == (facts, verdict):
            return before
        same = before is not None and before.facts.strict["version"] == facts.strict["version"]
        published = before.published if before is not None and same else now
        judged = before is not None and before.judged
        dated = now if judged or facts.registration else self._first_dated(verdict)
        if before is not None:
            dated = max(dated, before.dated)
        body = _dump(server_json.entry(facts.server, dated, verdict.state, verdict.reason, facts.registration))
        judged = judged or verdict.state != "unknown"
        return _Entry(facts, verdict, published, dated, judged, body, _listed(facts, verdict, published, now))

    def _first_dated(self, verdict: Verdict) -> datetime:
        """What is well when it is first looked at has been so since the file was written, as far as anyone knows.

        So a registry that is started again serves the bytes of the one before.
        """
        well = verdict.state in ("ok", "unknown")
        written = self._loaded.written if self._loaded else None
        return written if well and written else self._now()

    def _bury(self, entries: dict[str, _Entry]) -> None:
        """Agents that the file no longer has stay in the registry API as deleted, for those who follow its changes."""
        now = self._now()
        present = {entry.listed.name for entry in entries.values()}
        for entry in self._entries.values():
            if entry.listed.name not in present:
                gone = _listed(entry.facts, entry.verdict, entry.published, now, lifecycle="deleted")
                self._removed[gone.name] = gone
        kept = [each for each in self._removed.values() if each.name not in present][-KEEP_REMOVED:]
        self._removed = {each.name: each for each in kept}


def _listed(
    facts: _Facts, verdict: Verdict, published: datetime, now: datetime, lifecycle: registry_api.Lifecycle = "active"
) -> Listed:
    strict = facts.strict
    entry = registry_api.entry(
        strict,
        facts.server,
        published=published,
        updated=now,
        changed=published if lifecycle == "active" else now,
        health=(verdict.state, verdict.reason),
        lifecycle=lifecycle,
        registration=facts.registration,
    )
    text = "\n".join((strict["name"], strict["title"], strict["description"])).casefold()
    return Listed(strict["name"], strict["version"], now, text, _dump(entry), lifecycle == "deleted")


def _registration(registration: Registration) -> dict[str, Any]:
    """What the agent said of its abilities (seed 003, section 4), and what it promised."""
    said = registration.params
    abilities = said.capabilities.model_dump(by_alias=True, exclude_unset=True)
    return {
        **abilities,
        "heartbeat_interval": said.heartbeat_interval,
        "registeredAt": timestamp(registration.since),
    }


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
