"""The live model: which agents are expected, their addresses, their answers, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from pallas_contract.documents.reason import INPUT_REFUSED, Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state.drift import Expected
from pallas_registry.state.history import Change, MemberKind
from pallas_registry.state.status import NOT_PROBED, Condition, is_absent, judge, not_up_yet, together


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
    expected: float
    """On the clock of `AgentStates`."""
    answered: bool = False
    """Whether it was ever up, be it unwell."""
    refusal: Reason | None = None
    """The reason for which it refused its input; it ends and comes back in turns until somebody corrects it."""
    sighting: Sighting | None = None
    replicas: dict[Endpoint, Replica] = field(default_factory=dict)
    probed: dict[Endpoint, float] = field(default_factory=dict)
    probes: Condition = NOT_PROBED
    """As probes have it."""
    reported: Condition | None = None
    """As the agent's own heartbeats have it; None for an agent of the file, which sends none."""
    condition: Condition = NOT_PROBED

    @property
    def results(self) -> dict[Endpoint, Result]:
        return {endpoint: replica.result for endpoint, replica in self.replicas.items() if replica.result is not None}


class AgentStates:
    """The conditions of all agents. Only the file removes an agent of the file; a failed probe never does.

    Not thread-safe: everything happens on the event loop.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        on_change: Callable[[Change], None],
        on_update: Callable[[], None],
        start_period: float = 0.0,
        kind: MemberKind = "agent",
    ) -> None:
        """`clock` is monotonic seconds, `start_period` those for which an agent of the file may not be up at first.

        `on_change` hears each change of state, `on_update` whatever else is different: a condition (a reason, say) or
        where the replicas are, not the finding of each probe. A service (`kind`) may answer by any name.
        """
        self._clock = clock
        self._now = now
        self._on_change = on_change
        self._on_update = on_update
        self._start_period = start_period
        self._kind: MemberKind = kind
        self._entries: dict[str, _Entry] = {}
        self._expected: Mapping[str, Expected] = {}
        self.agents: tuple[str, ...] = ()
        """The agents in the order of the file, then those that registered."""
        self.moves = 0
        """Grows when it changes who is expected, or where."""
        self.undeclared: tuple[str, ...] = ()
        """Addresses that discovery found beside those of the agents in the file."""

    def __contains__(self, agent: str) -> bool:
        """Return whether it is expected."""
        return agent in self._entries

    @property
    def waiting(self) -> tuple[str, ...]:
        """Agents of the file nothing is known about yet, and will be: not those that cannot be asked."""
        return tuple(
            agent
            for agent, entry in self._entries.items()
            if entry.condition.state == "unknown"
            and entry.reported is None
            and entry.condition.reason.code != "NotProbed"
        )

    @property
    def starting(self) -> tuple[str, ...]:
        """Agents of the file that have not been up yet."""
        return tuple(agent for agent, entry in self._entries.items() if entry.condition.state == "starting")

    def condition(self, agent: str) -> Condition:
        """Return state and reason of `agent`. Raises KeyError when it is not expected."""
        return self._entries[agent].condition

    def endpoints(self, agent: str) -> tuple[Endpoint, ...]:
        """Return the endpoints that discovery found last."""
        sighting = self._entries[agent].sighting
        return sighting.endpoints if sighting else ()

    def replicas(self, agent: str) -> tuple[Replica, ...]:
        """Return one for each endpoint, in the order of discovery."""
        entry = self._entries[agent]
        return tuple(entry.replicas.get(endpoint) or Replica(endpoint.label) for endpoint in self.endpoints(agent))

    def result(self, agent: str, endpoint: Endpoint) -> Result | None:
        """Return the last result of this endpoint; None as well when it or the agent is no longer there."""
        entry = self._entries.get(agent)
        replica = entry.replicas.get(endpoint) if entry else None
        return replica.result if replica else None

    def since(self, agent: str) -> datetime:
        """Return the time at which the agent came into the state it is in."""
        return self._entries[agent].since

    def age(self, agent: str) -> float | None:
        """Return the seconds since the replica probed longest ago was probed; None before the first probe."""
        probed = self._entries[agent].probed.values()
        return self._clock() - min(probed) if probed else None

    def expect(self, agents: Sequence[str]) -> None:
        """Take over who is in the file or registered: new ones start as unknown, others than these are forgotten."""
        self._entries = {agent: self._entries.get(agent) or _Entry(self._now(), self._clock()) for agent in agents}
        self.agents = tuple(self._entries)
        self.moves += 1
        self._on_update()

    def lock(self, expected: Mapping[str, Expected]) -> None:
        """Take over what the lock has of the agents of the file; empty where there is no lock."""
        if expected != self._expected:
            self._expected = expected
            for agent, entry in self._entries.items():
                self._judge(agent, entry)

    def set_sighting(self, agent: str, sighting: Sighting | None) -> None:
        """Take over the answer of discovery; None where nobody looks. Results of lost endpoints are dropped."""
        entry = self._entries.get(agent)
        if entry is None:
            return
        if sighting is not None and sighting == entry.sighting:
            if entry.condition.state == "starting":  # its time may be over
                self._judge(agent, entry)
            return
        endpoints = sighting.endpoints if sighting else ()
        moved = endpoints != self.endpoints(agent)
        entry.sighting = sighting
        for gone in entry.probed.keys() - set(endpoints):
            del entry.probed[gone], entry.replicas[gone]
        if moved:
            self.moves += 1
            self._on_update()
        self._judge(agent, entry)

    def set_reported(self, agent: str, reported: Condition) -> None:
        """Take over what an agent that registered reports, or its silence: the worse of it and of probes counts."""
        entry = self._entries[agent]
        entry.reported = reported
        self._judge(agent, entry)

    def remove(self, agent: str, reason: Reason) -> None:
        """Forget an agent that is no longer registered, after a change to unknown unless it was that."""
        entry = self._entries.pop(agent, None)
        self.agents = tuple(self._entries)
        self.moves += 1
        if entry is not None and entry.condition.state != "unknown":
            self._on_change(
                Change(agent, old=entry.condition.state, new="unknown", reason=reason, at=self._now(), kind=self._kind)
            )
        self._on_update()

    def set_undeclared(self, addresses: tuple[str, ...]) -> None:
        """Take over the addresses that are there and in no file: published, never trusted."""
        if addresses != self.undeclared:
            self.undeclared = addresses
            self._on_update()

    def add_result(self, agent: str, endpoint: Endpoint, result: Result) -> None:
        """Take over the result of a probe; ignored when the agent or the endpoint has gone since the probe began."""
        entry = self._entries.get(agent)
        if entry is None or entry.sighting is None or endpoint not in entry.sighting.endpoints:
            return
        now = self._now()
        before = entry.replicas.get(endpoint)
        well = now if result.state == "ok" else before.well if before else None
        entry.replicas[endpoint] = Replica(endpoint.label, result, now, well)
        entry.probed[endpoint] = self._clock()
        if result.state != "error":
            entry.answered = True
            entry.refusal = None
        elif result.reason.code == INPUT_REFUSED:
            entry.refusal = result.reason
        self._judge(agent, entry)

    def _probed(self, entry: _Entry) -> Condition:
        """Return the condition of an agent of the file, as probes have it."""
        if entry.refusal and is_absent(entry.probes):
            return Condition("error", entry.refusal)
        in_time = self._clock() - entry.expected < self._start_period
        return not_up_yet(entry.probes) if in_time and not entry.answered else entry.probes

    def _judge(self, agent: str, entry: _Entry) -> None:
        old = entry.condition
        new = entry.reported
        if entry.sighting is not None:
            # a container that comes back elsewhere keeps its state until it has answered
            name = agent if self._kind == "agent" and not entry.reported else None
            entry.probes = judge(name, entry.sighting, entry.results, self._expected.get(agent)) or entry.probes
            new = together(entry.reported, entry.probes) if entry.reported is not None else self._probed(entry)
        if new is None or new == old:
            return
        entry.condition = new
        if new.state != old.state:
            entry.since = self._now()
            self._on_change(
                Change(agent, old=old.state, new=new.state, reason=new.reason, at=entry.since, kind=self._kind)
            )
        self._on_update()


class MemberStates(NamedTuple):
    """The agents and the services of a fleet, apart: services are in no document about agents."""

    agents: AgentStates
    services: AgentStates
