"""The live model: which agents are expected, where they were seen, what they answered, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pallas_contract.probe import Result
from pallas_registry.discovery import Endpoint, Sighting
from pallas_registry.history import Change
from pallas_registry.verdict import NOT_PROBED, Verdict, judge


@dataclass(frozen=True, slots=True)
class Replica:
    """One endpoint of an agent: what it answered last, when that was, and when it was last well."""

    label: str
    result: Result | None = None
    probed: datetime | None = None
    well: datetime | None = None


@dataclass(slots=True)
class _Entry:
    since: datetime
    sighting: Sighting | None = None
    replicas: dict[Endpoint, Replica] = field(default_factory=dict)
    probed: dict[Endpoint, float] = field(default_factory=dict)
    verdict: Verdict = NOT_PROBED

    @property
    def results(self) -> dict[Endpoint, Result]:
        return {endpoint: seen.result for endpoint, seen in self.replicas.items() if seen.result is not None}


class Board:
    """Facts go in, verdicts come out. Only the file removes an agent; a failed probe never does.

    Not thread-safe: everything happens on the event loop.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        on_change: Callable[[Change], None],
        on_update: Callable[[], None],
    ) -> None:
        """`clock` is monotonic seconds; `on_change` hears each change of state, `on_update` whatever else is different.

        That is a verdict (a reason, say) or where the replicas are, not the finding of each probe.
        """
        self._clock, self._now = clock, now
        self._on_change, self._on_update = on_change, on_update
        self._entries: dict[str, _Entry] = {}
        self.undeclared: tuple[str, ...] = ()
        """Addresses that discovery found beside those of the agents in the file."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The expected agents in the order of the file."""
        return tuple(self._entries)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Agents nothing is known about yet."""
        return tuple(agent for agent, entry in self._entries.items() if entry.verdict.state == "unknown")

    def verdict(self, agent: str) -> Verdict:
        """Raises KeyError when `agent` is not expected."""
        return self._entries[agent].verdict

    def endpoints(self, agent: str) -> tuple[Endpoint, ...]:
        sighting = self._entries[agent].sighting
        return sighting.endpoints if sighting else ()

    def replicas(self, agent: str) -> tuple[Replica, ...]:
        """One for each endpoint, in the order of discovery."""
        entry = self._entries[agent]
        return tuple(entry.replicas.get(endpoint) or Replica(endpoint.label) for endpoint in self.endpoints(agent))

    def result(self, agent: str, endpoint: Endpoint) -> Result | None:
        """The last finding of this endpoint."""
        seen = self._entries[agent].replicas.get(endpoint)
        return seen.result if seen else None

    def since(self, agent: str) -> datetime:
        """When the agent came into the state it is in."""
        return self._entries[agent].since

    def age(self, agent: str) -> float | None:
        """Seconds since the replica probed longest ago was probed; None before the first probe."""
        probed = self._entries[agent].probed.values()
        return self._clock() - min(probed) if probed else None

    def expect(self, agents: Sequence[str]) -> None:
        """Take over the agents of the file: new ones start as unknown, others than these are forgotten."""
        self._entries = {agent: self._entries.get(agent) or _Entry(self._now()) for agent in agents}
        self._on_update()

    def sight(self, agent: str, sighting: Sighting) -> None:
        """Discovery's word. What endpoints answered that are gone is forgotten."""
        entry = self._entries.get(agent)
        if entry is None:
            return
        moved = sighting.endpoints != self.endpoints(agent)
        entry.sighting = sighting
        for gone in entry.probed.keys() - set(sighting.endpoints):
            del entry.probed[gone], entry.replicas[gone]
        if moved:
            self._on_update()
        self._judge(agent, entry, sighting)

    def beside(self, addresses: tuple[str, ...]) -> None:
        """Discovery's word about who is there and in no file: shown, never trusted."""
        if addresses != self.undeclared:
            self.undeclared = addresses
            self._on_update()

    def report(self, agent: str, endpoint: Endpoint, result: Result) -> None:
        """A probe's word; ignored when the agent or the endpoint has gone since the probe began."""
        entry = self._entries.get(agent)
        if entry is None or entry.sighting is None or endpoint not in entry.sighting.endpoints:
            return
        now, before = self._now(), entry.replicas.get(endpoint)
        well = now if result.state == "ok" else before.well if before else None
        entry.replicas[endpoint] = Replica(endpoint.label, result, now, well)
        entry.probed[endpoint] = self._clock()
        self._judge(agent, entry, entry.sighting)

    def _judge(self, agent: str, entry: _Entry, sighting: Sighting) -> None:
        old, new = entry.verdict, judge(agent, sighting, entry.results)
        if new is None or new == old:  # a container that comes back elsewhere keeps its state until it has answered
            return
        entry.verdict = new
        if new.state != old.state:
            entry.since = self._now()
            self._on_change(Change(agent, old.state, new.state, new.reason, entry.since))
        self._on_update()
