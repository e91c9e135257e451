"""The live model: which agents are expected, where they were seen, what they answered, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pallas_contract.health import State
from pallas_contract.probe import Result
from pallas_registry.discovery import Endpoint, Sighting
from pallas_registry.verdict import NOT_PROBED, Verdict, judge


@dataclass(frozen=True, slots=True)
class Change:
    """A change of state, as it is logged and counted."""

    agent: str
    old: State
    new: State
    reason: str
    at: datetime


@dataclass(slots=True)
class _Entry:
    sighting: Sighting | None = None
    results: dict[Endpoint, Result] = field(default_factory=dict)
    probed: dict[Endpoint, float] = field(default_factory=dict)
    verdict: Verdict = NOT_PROBED


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
        """`clock` is monotonic seconds; `on_change` hears each change of state, `on_update` any change of a verdict."""
        self._clock, self._now = clock, now
        self._on_change, self._on_update = on_change, on_update
        self._entries: dict[str, _Entry] = {}

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

    def age(self, agent: str) -> float | None:
        """Seconds since the replica probed longest ago was probed; None before the first probe."""
        probed = self._entries[agent].probed.values()
        return self._clock() - min(probed) if probed else None

    def expect(self, agents: Sequence[str]) -> None:
        """Take over the agents of the file: new ones start as unknown, others than these are forgotten."""
        self._entries = {agent: self._entries.get(agent) or _Entry() for agent in agents}
        self._on_update()

    def sight(self, agent: str, sighting: Sighting) -> None:
        """Discovery's word. What endpoints answered that are gone is forgotten."""
        entry = self._entries.get(agent)
        if entry is None:
            return
        entry.sighting = sighting
        for gone in entry.probed.keys() - set(sighting.endpoints):
            del entry.probed[gone], entry.results[gone]
        self._judge(agent, entry, sighting)

    def report(self, agent: str, endpoint: Endpoint, result: Result) -> None:
        """A probe's word; ignored when the agent or the endpoint has gone since the probe began."""
        entry = self._entries.get(agent)
        if entry is None or entry.sighting is None or endpoint not in entry.sighting.endpoints:
            return
        entry.results[endpoint] = result
        entry.probed[endpoint] = self._clock()
        self._judge(agent, entry, entry.sighting)

    def _judge(self, agent: str, entry: _Entry, sighting: Sighting) -> None:
        old, new = entry.verdict, judge(agent, sighting, entry.results)
        if new is None or new == old:  # a container that comes back elsewhere keeps its state until it has answered
            return
        entry.verdict = new
        if new.state != old.state:
            self._on_change(Change(agent, old.state, new.state, new.reason, self._now()))
        self._on_update()
