"""The content of the status page, gathered from the live model at one moment. No HTML here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from pallas_contract import names
from pallas_contract.documents.health import State
from pallas_contract.documents.reason import Reason
from pallas_contract.launch import addresses, service_check
from pallas_registry.fleet_file import FleetReading
from pallas_registry.registration.leases import Leases, Registration
from pallas_registry.state.agents import AgentStates, MemberStates, Replica
from pallas_registry.state.history import Change, History
from pallas_registry.state.root_cause import Root, concerns, root_of, roots
from pallas_registry.state.status import WORST_FIRST, Condition

MOST_ROWS = 500
"""Agents on the page."""
CHANGES = 20
_TROUBLE: frozenset[State] = frozenset({"error", "degraded"})


@dataclass(frozen=True, slots=True)
class Registered:
    """The part of a row about registering. `signal` is the last sign of life since the registry started."""

    tools: tuple[str, ...]
    interval: float
    signal: datetime | None


@dataclass(frozen=True, slots=True)
class Row:
    """One agent. `roots` is empty when it is well; `probed` is that of the replica probed longest ago."""

    agent: str
    slug: str
    title: str
    description: str
    url: str | None
    state: State
    reason: Reason
    roots: tuple[Root, ...]
    since: datetime
    probed: datetime | None
    eras: tuple[str, ...]
    depends_on: tuple[str, ...]
    replicas: tuple[Replica, ...]
    registered: Registered | None = None

    @property
    def well(self) -> int:
        """Replicas that are well."""
        return sum(1 for replica in self.replicas if replica.result and replica.result.state == "ok")

    @property
    def elsewhere(self) -> tuple[Root, ...]:
        """The root causes that are not the agent itself."""
        return tuple(root for root in self.roots if root.agent != self.agent)


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One service. `probed` is None where nobody can ask it, or nobody has yet; the reason says which."""

    name: str
    title: str
    provides: str
    state: State
    reason: Reason
    since: datetime
    probed: datetime | None


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the graph: an agent, or a service; one that is not probed may still be named as the trouble."""

    name: str
    title: str
    state: State | Literal["service", "suspect"]
    root: bool = False


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole page. `troubles` maps each root cause to the agents that suffer from it, itself included."""

    fleet: str
    version: str
    model: str
    now: datetime
    config_ok: bool
    states: Mapping[str, State]
    counts: Mapping[State, int]
    rows: tuple[Row, ...]
    hidden: int
    undeclared: tuple[str, ...]
    troubles: Mapping[Root, tuple[str, ...]]
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    services: tuple[ServiceRow, ...] = ()

    @property
    def down(self) -> tuple[ServiceRow, ...]:
        """The services that are in trouble themselves; one that wants credentials has those who have them."""
        return tuple(row for row in self.services if row.state in _TROUBLE)


def gather(
    loaded: FleetReading,
    placement: addresses.Placement,
    states: MemberStates,
    history: History,
    *,
    now: datetime,
    config_ok: bool,
    leases: Leases | None = None,
    most: int | None = MOST_ROWS,
) -> Overview:
    """Return the overview. Agents that are unwell come first, then the order of the file; `most` bounds the rows."""
    fleet = loaded.fleet
    agent_states = states.agents
    registered = {registration.agent: registration for registration in (leases.all if leases else ())}
    agents = [agent for agent in (*fleet.agents, *registered) if agent in agent_states]
    conditions = {agent: agent_states.condition(agent) for agent in agents}
    depends = {agent: tuple(fleet.agents[agent].depends_on) for agent in agents if agent in fleet.agents}
    services = _service_rows(loaded, states.services)
    probed = {row.name: Condition(row.state, row.reason) for row in services if row.state != "unknown"}
    causes = {agent: roots(agent, depends, conditions | probed) for agent in agents}
    troubles: dict[Root, list[str]] = {}
    for service in services:
        if service.state in _TROUBLE:
            troubles[root_of(service.name, probed[service.name])] = []
    for agent in agents:
        for root in causes[agent]:
            troubles.setdefault(root, []).append(agent)
    # a stable sort: agents of one state stay in the order of the file
    ranked = sorted(agents, key=lambda agent: WORST_FIRST.index(conditions[agent].state))

    # only for the rows that are shown, which `most` bounds
    def row(agent: str) -> Row:
        if leases is not None and agent in registered:
            return _registered_row(registered[agent], agent_states, causes[agent], signal=leases.last_signal(agent))
        return _row(loaded, placement, agent_states, agent=agent, causes=causes[agent])

    rows = tuple(map(row, ranked[:most]))
    nodes, edges = _graph(loaded, conditions, depends, {root.agent for root in troubles}, probed=probed)
    # over all agents, also those that `most` leaves out of the rows
    counted = Counter(condition.state for condition in conditions.values())
    return Overview(
        fleet=fleet.name,
        version=fleet.version,
        model=loaded.capabilities.model if loaded.capabilities else "",
        now=now,
        config_ok=config_ok,
        states={name: condition.state for name, condition in (probed | conditions).items()},
        counts={state: counted[state] for state in get_args(State)},
        rows=rows,
        hidden=len(agents) - len(rows),
        undeclared=agent_states.undeclared,
        troubles={root: tuple(sufferers) for root, sufferers in troubles.items()},
        nodes=nodes,
        edges=edges,
        changes=tuple(history.last(CHANGES)),
        services=services,
    )


def _service_rows(loaded: FleetReading, states: AgentStates) -> tuple[ServiceRow, ...]:
    """Return the gateway, and the services in the order of the file."""
    return tuple(
        ServiceRow(
            name=name,
            title=names.title(name),
            provides=service_check.provides(loaded.fleet, name),
            state=states.condition(name).state,
            reason=states.condition(name).reason,
            since=states.since(name),
            probed=max((replica.probed for replica in states.replicas(name) if replica.probed), default=None),
        )
        for name in service_check.followed(loaded.fleet)
        if name in states
    )


def _row(
    loaded: FleetReading,
    placement: addresses.Placement,
    agent_states: AgentStates,
    *,
    agent: str,
    causes: tuple[Root, ...],
) -> Row:
    written = loaded.fleet.agents[agent]
    return Row(
        title=written.title,
        description=written.description,
        url=addresses.agent_url(loaded.fleet, agent, placement),
        roots=causes,
        depends_on=tuple(written.depends_on),
        **_live_fields(agent_states, agent),
    )


def _registered_row(
    registration: Registration, agent_states: AgentStates, causes: tuple[Root, ...], *, signal: datetime | None
) -> Row:
    params = registration.params
    return Row(
        title=params.title or names.title(registration.agent),
        description=params.description,
        url=params.url,
        roots=causes,
        depends_on=(),
        registered=Registered(tuple(params.capabilities.tools), params.heartbeat_interval, signal),
        **_live_fields(agent_states, registration.agent),
    )


def _live_fields(agent_states: AgentStates, agent: str) -> dict[str, Any]:
    """Return the fields of a row that come from the live model."""
    condition = agent_states.condition(agent)
    replicas = agent_states.replicas(agent)
    return {
        "agent": agent,
        "slug": names.slug(agent),
        "state": condition.state,
        "reason": condition.reason,
        "since": agent_states.since(agent),
        "probed": min((replica.probed for replica in replicas if replica.probed), default=None),
        "eras": tuple(sorted({replica.result.era for replica in replicas if replica.result and replica.result.era})),
        "replicas": replicas,
    }


def _graph(
    loaded: FleetReading,
    conditions: Mapping[str, Condition],
    depends: Mapping[str, tuple[str, ...]],
    causes: set[str],
    *,
    probed: Mapping[str, Condition],
) -> tuple[tuple[Node, ...], tuple[tuple[str, str], ...]]:
    fleet = loaded.fleet
    agents = [
        Node(agent, fleet.agents[agent].title, condition.state, agent in causes)
        for agent, condition in conditions.items()
        if agent in fleet.agents
    ]
    edges = tuple(
        (agent, other)
        for agent, others in depends.items()
        for other in others
        if other in conditions or other in fleet.services
    )
    # a service that nobody depends on would be a box without a line
    used = {other for _, other in edges}
    suspects = {
        other
        for agent, other in edges
        if other in fleet.services
        and other not in probed
        and agent in causes
        and concerns(conditions[agent].reason, other)
    }
    services = [
        Node(name, names.title(name), probed[name].state, name in causes)
        if name in probed
        else Node(name, names.title(name), "suspect" if name in suspects else "service", name in suspects)
        for name in fleet.services
        if name in used
    ]
    if not fleet.gateway:
        return (*agents, *services), edges
    door = probed.get(names.GATEWAY)
    state = door.state if door else "service"
    gateway = Node(names.GATEWAY, names.title(names.GATEWAY), state, names.GATEWAY in causes)
    led_to = tuple((names.GATEWAY, agent) for agent in fleet.gateway.agents if agent in conditions)
    return (gateway, *agents, *services), (*led_to, *edges)
