"""The content of the status page, gathered from the live model at one moment. No HTML here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from pallas_contract import names
from pallas_contract.documents.health import State
from pallas_contract.documents.reason import Reason
from pallas_contract.launch import addresses, service_check
from pallas_registry.fleet_file import FleetReading
from pallas_registry.registration.leases import Leases, Registration
from pallas_registry.state.agents import AgentStates, MemberStates, Replica
from pallas_registry.state.history import Change, History
from pallas_registry.state.root_cause import Root, root_of, roots
from pallas_registry.state.status import WORST_FIRST, Condition
from pallas_registry.state.uptime import NOTHING, AgentUptime, Uptime
from pallas_registry.status_page import graph, graph_layout
from pallas_registry.status_page.graph import Node
from pallas_service.console import pages

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
    """One agent. `roots` is empty when it is well; `probed` is that of the replica probed longest ago.

    `latency` is that of the slowest replica's last probe, in seconds; `tools` None while they were not told. `level` is
    1 for one that nobody in the file calls, and one more for each step on the longest way to it.
    """

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
    uptime: AgentUptime
    latency: float | None
    tools: tuple[str, ...] | None
    level: int
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
    undeclared: tuple[str, ...]
    troubles: Mapping[Root, tuple[str, ...]]
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    services: tuple[ServiceRow, ...] = ()
    console: str = ""
    """URL of the gateway's console; empty where there is none, or clients outside of the fleet cannot reach it."""

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
    uptime: Uptime | None = None,
) -> Overview:
    """Return the overview. Agents that are unwell come first, then the order of the file."""
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

    drawing = graph.build(loaded, conditions, depends, {root.agent for root in troubles}, probed=probed)
    levels = graph_layout.levels(drawing.nodes, drawing.edges)

    def row(agent: str) -> Row:
        live = _live_fields(
            agent_states,
            agent,
            causes[agent],
            level=levels.get(agent, 0) + 1,
            uptime=uptime.of(agent) if uptime else NOTHING,
        )
        if leases is not None and agent in registered:
            return _registered_row(registered[agent], live, signal=leases.last_signal(agent))
        return _row(loaded, placement, agent, live)

    counted = Counter(condition.state for condition in conditions.values())
    return Overview(
        fleet=fleet.name,
        version=fleet.version,
        model=loaded.capabilities.model if loaded.capabilities else "",
        now=now,
        config_ok=config_ok,
        states={name: condition.state for name, condition in (probed | conditions).items()},
        counts={state: counted[state] for state in get_args(State)},
        rows=tuple(map(row, ranked)),
        undeclared=agent_states.undeclared,
        troubles={root: tuple(sufferers) for root, sufferers in troubles.items()},
        nodes=drawing.nodes,
        edges=drawing.edges,
        changes=tuple(history.last(CHANGES)),
        services=services,
        console=_console_url(loaded, placement),
    )


def _console_url(loaded: FleetReading, placement: addresses.Placement) -> str:
    gateway = loaded.fleet.gateway
    if not gateway or not gateway.console or not (gateway.publish or placement == "local"):
        return ""
    return addresses.gateway_url(loaded.fleet, placement) + pages.PATH


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


def _row(loaded: FleetReading, placement: addresses.Placement, agent: str, live: Mapping[str, Any]) -> Row:
    written = loaded.fleet.agents[agent]
    return Row(
        title=written.title,
        description=written.description,
        url=addresses.agent_url(loaded.fleet, agent, placement),
        depends_on=tuple(written.depends_on),
        **live,
    )


def _registered_row(registration: Registration, live: Mapping[str, Any], *, signal: datetime | None) -> Row:
    params = registration.params
    tools = tuple(params.capabilities.tools)
    return Row(
        title=params.title or names.title(registration.agent),
        description=params.description,
        url=params.url,
        depends_on=(),
        registered=Registered(tools, params.heartbeat_interval, signal),
        **{**live, "tools": live["tools"] if live["tools"] is not None else tools},
    )


def _live_fields(
    agent_states: AgentStates, agent: str, causes: tuple[Root, ...], *, level: int, uptime: AgentUptime
) -> dict[str, Any]:
    """Return the fields of a row that come from the live model."""
    condition = agent_states.condition(agent)
    replicas = agent_states.replicas(agent)
    results = [replica.result for replica in replicas if replica.result]
    told = [result.tools for result in results if result.tools is not None]
    return {
        "agent": agent,
        "slug": names.slug(agent),
        "state": condition.state,
        "reason": condition.reason,
        "roots": causes,
        "since": agent_states.since(agent),
        "probed": min((replica.probed for replica in replicas if replica.probed), default=None),
        "eras": tuple(sorted({result.era for result in results if result.era})),
        "replicas": replicas,
        "uptime": uptime,
        "latency": max((result.latency for result in results if result.state != "error"), default=None),
        "tools": tuple(sorted({tool for tools in told for tool in tools})) if told else None,
        "level": level,
    }
