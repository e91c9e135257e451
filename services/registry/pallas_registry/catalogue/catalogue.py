"""The documents about the agents, as ready bytes: made once per change, served as they are, one truth in each face."""

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
from pallas_registry.catalogue.registry_api import ServerEntry, ServerList
from pallas_registry.fleet_file import FleetReading
from pallas_registry.prebuilt.documents import Document
from pallas_registry.registration.leases import Registration
from pallas_registry.state.status import Condition

PATH = names.SERVER_JSON_PATH
CARDS = "/server-cards/"
BRIEFLY = "public, max-age=60"
"""Cards change with the file only; a client may keep one for a minute."""
KEEP_REMOVED = 1000
"""Most removed agents that the registry API still tells about."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """The word of the file about an agent, or of an agent that registered: the same until it is read again."""

    server: dict[str, Any]
    strict: dict[str, Any]
    registration: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    facts: _Facts
    condition: Condition
    published: datetime
    dated: datetime
    """The `updatedAt` of the seed's document."""
    judged: bool
    """Whether it was ever in a state other than unknown and starting."""
    body: bytes
    listing: ServerEntry


class Catalogue:
    """The documents about agents: the seed's (000 section 1), the registry API's, and cards with their catalogue."""

    def __init__(self, *, now: Callable[[], datetime], placement: addresses.Placement) -> None:
        self._now = now
        self.placement = placement
        self._reading: FleetReading | None = None
        self._registered: Sequence[Registration] = ()
        self._facts: dict[str, _Facts] = {}
        self._entries: dict[str, _Entry] = {}
        self._removed: dict[str, ServerEntry] = {}
        self._documents: dict[str, Document] = {PATH: Document(b'{"servers":[]}')}
        self._list = ServerList()

    @property
    def document(self) -> Document:
        """The seed's."""
        return self._documents[PATH]

    def find(self, method: str, path: str, query: bytes) -> Document | None:
        """Return the document of a path, whatever the face (prebuilt.documents.Find)."""
        return self.ready(path) or self._list.find(method, path, query)

    def ready(self, path: str) -> Document | None:
        """Return the document of a path if it is not a page of the registry API: those are joined when asked for."""
        return self._documents.get(path)

    def publish(
        self, reading: FleetReading, condition: Callable[[str], Condition], registered: Sequence[Registration] = ()
    ) -> None:
        """Bring the documents up to date. An entry that says the same as before keeps its `updatedAt`."""
        reread = reading is not self._reading or registered is not self._registered
        if reread:
            self._read(reading, registered)
        entries = {agent: self._entry(agent, facts, condition(agent)) for agent, facts in self._facts.items()}
        if reread:
            self._bury(entries)
        # an entry that says the same is the same object: then there is nothing to publish
        elif all(entry is self._entries.get(agent) for agent, entry in entries.items()):
            return
        self._entries = entries
        body = b'{"servers":[' + b",".join(entry.body for entry in entries.values()) + b"]}"
        # the same bytes keep their ETag
        if body != self.document.body:
            self._documents[PATH] = Document(body)
        self._list = ServerList([*(entry.listing for entry in entries.values()), *self._removed.values()])

    def _read(self, reading: FleetReading, registered: Sequence[Registration]) -> None:
        self._reading = reading
        self._registered = registered
        self._facts = {}
        for agent in reading.fleet.agents:
            server = server_json.server(reading.fleet, agent, reading.capabilities, self.placement)
            public = addresses.agent_url(reading.fleet, agent, self.placement)
            self._facts[agent] = _Facts(server, registry_api.server(server, public))
        for registration in registered:
            server = server_json.registered(reading.fleet, registration.params.model_dump())
            self._facts[registration.agent] = _Facts(
                server, registry_api.server(server, registration.params.url), _registration(registration)
            )
        home = addresses.public_url(reading.fleet, names.REGISTRY, reading.fleet.registry_port)
        made = {f"{CARDS}{names.slug(agent)}": server_card.card(facts.strict) for agent, facts in self._facts.items()}
        catalog = server_card.catalog((card, home + path) for path, card in made.items())
        self._documents = {
            PATH: self.document,
            server_card.CATALOG_PATH: Document(_dump(catalog), server_card.CATALOG_TYPE, cache=BRIEFLY),
            **{path: Document(_dump(card), server_card.CARD_TYPE, cache=BRIEFLY) for path, card in made.items()},
        }

    def _entry(self, agent: str, facts: _Facts, condition: Condition) -> _Entry:
        before = self._entries.get(agent)
        now = self._now()
        if before is not None and (before.facts, before.condition) == (facts, condition):
            return before
        same = before is not None and before.facts.strict["version"] == facts.strict["version"]
        published = before.published if before is not None and same else now
        judged = before is not None and before.judged
        dated = now if judged or facts.registration else self._first_dated(condition)
        if before is not None:
            # readers take a time that goes back for an old copy
            dated = max(dated, before.dated)
        body = _dump(
            server_json.entry(
                facts.server, dated, state=condition.state, reason=condition.reason, registration=facts.registration
            )
        )
        judged = judged or condition.state not in ("starting", "unknown")
        return _Entry(
            facts=facts,
            condition=condition,
            published=published,
            dated=dated,
            judged=judged,
            body=body,
            listing=_server_entry(facts, condition, published=published, updated=now),
        )

    def _first_dated(self, condition: Condition) -> datetime:
        """Return the time of the file for an agent that is well at first sight: it has been, as far as anyone knows.

        So a registry that is started again serves the bytes of the one before.
        """
        well = condition.state in ("ok", "starting", "unknown")
        written = self._reading.written if self._reading else None
        return written if well and written else self._now()

    def _bury(self, entries: dict[str, _Entry]) -> None:
        """Keep agents that the file no longer has in the registry API as deleted, for those who follow changes."""
        now = self._now()
        present = {entry.listing.name for entry in entries.values()}
        for entry in self._entries.values():
            if entry.listing.name not in present:
                deleted = _server_entry(
                    entry.facts, entry.condition, published=entry.published, updated=now, lifecycle="deleted"
                )
                self._removed[deleted.name] = deleted
        removed = [entry for entry in self._removed.values() if entry.name not in present][-KEEP_REMOVED:]
        self._removed = {entry.name: entry for entry in removed}


def _server_entry(
    facts: _Facts,
    condition: Condition,
    *,
    published: datetime,
    updated: datetime,
    lifecycle: registry_api.Lifecycle = "active",
) -> ServerEntry:
    strict = facts.strict
    entry = registry_api.entry(
        strict,
        facts.server,
        published=published,
        updated=updated,
        changed=published if lifecycle == "active" else updated,
        health=(condition.state, condition.reason),
        lifecycle=lifecycle,
        registration=facts.registration,
    )
    # a line break is in no query: a search cannot match across two fields
    text = "\n".join((strict["name"], strict["title"], strict["description"])).casefold()
    return ServerEntry(
        name=strict["name"],
        version=strict["version"],
        updated=updated,
        text=text,
        body=_dump(entry),
        deleted=lifecycle == "deleted",
    )


def _registration(registration: Registration) -> dict[str, Any]:
    """Return the abilities that the agent registered with (seed 003, section 4), and what it promised."""
    params = registration.params
    abilities = params.capabilities.model_dump(by_alias=True, exclude_unset=True)
    return {
        **abilities,
        "heartbeat_interval": params.heartbeat_interval,
        "registeredAt": timestamp(registration.since),
    }


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
