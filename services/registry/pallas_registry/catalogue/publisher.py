"""Publishing: the documents are made anew after each change, with the others of the moment, and never too often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pallas_registry.catalogue import prometheus_sd, services
from pallas_registry.catalogue.catalogue import Catalogue
from pallas_registry.dependencies import Dependencies
from pallas_registry.fleet_file import FleetReading
from pallas_registry.prebuilt.documents import Document
from pallas_registry.registration.leases import Registration
from pallas_registry.state.agents import MemberStates
from pallas_registry.state.history import History
from pallas_registry.timing import surviving, wait_for

AT_ONCE = 0.01
"""Seconds that making the documents may take without a pause after it."""
HOLD = 1.0
"""Most seconds for which a new reading of the file waits for the first word about the agents it adds: then they appear
as they are, and those who follow the ETag see one change and not two."""


class Publisher:
    """The documents that are ready, and the loop that keeps them up to date."""

    def __init__(
        self,
        catalogue: Catalogue,
        states: MemberStates,
        history: History,
        *,
        updated: asyncio.Event,
        static: dict[str, Document],
        reading: Callable[[], FleetReading],
        registrations: Callable[[], Sequence[Registration]],
        dependencies: Dependencies,
    ) -> None:
        """Take the parts. `updated` is set when documents would differ; `static` are those that never do, by path."""
        self.catalogue = catalogue
        self._updated = updated
        self._agent_states = states.agents
        self._history = history
        self._service_states = states.services
        self._documents = static
        self._reading = reading
        self._registrations = registrations
        self._clock = dependencies.clock
        self._sleep = dependencies.sleep
        self._hold_until = 0.0
        self._moves = -1

    def find(self, method: str, path: str, query: bytes) -> Document | None:
        """Return the document of a path, ready or joined of ready entries (prebuilt.documents.Find)."""
        return self.ready(path) or self.catalogue.find(method, path, query)

    def ready(self, path: str) -> Document | None:
        """Return the document of a path if there is no work in it (prebuilt.fast_path.Ready)."""
        return self.catalogue.ready(path) or self._documents.get(path)

    def hold(self) -> None:
        """Wait `HOLD` seconds, at most, for the first probes of agents that were just added."""
        self._hold_until = self._clock() + HOLD

    def publish(self) -> None:
        """Make the documents anew, then wake those who follow the changes."""
        reading = self._reading()
        self.catalogue.publish(reading, self._agent_states.condition, self._registrations())
        services_document = services.document(reading, self._service_states, self.catalogue.placement)
        # the same bytes keep their ETag
        if services.PATH not in self._documents or self._documents[services.PATH].body != services_document.body:
            self._documents[services.PATH] = services_document
        # targets are where agents are, not how they are: most changes leave them as they were
        if self._moves != self._agent_states.moves:
            self._moves = self._agent_states.moves
            targets = prometheus_sd.document(
                reading.fleet.name, self._agent_states.agents, self._agent_states.endpoints
            )
            self._documents[prometheus_sd.PATH] = targets
        self._history.ring()

    async def run(self) -> None:
        """Publish after each change, until cancelled; many changes in one turn of the loop make one document.

        Where that takes long, since there are thousands of agents, changes are collected for a while: probing comes
        first, and documents cost a fifth of the time at most.
        """
        while True:
            await self._updated.wait()
            while self._agent_states.waiting and (remaining := self._hold_until - self._clock()) > 0:
                self._updated.clear()
                await wait_for(self._updated, remaining, self._sleep)
            self._updated.clear()
            began = self._clock()
            with surviving("documents"):
                self.publish()
            # the measured time and not the number of agents: machines differ more than fleets
            elapsed = self._clock() - began
            if elapsed > AT_ONCE:
                await self._sleep(4 * elapsed)
