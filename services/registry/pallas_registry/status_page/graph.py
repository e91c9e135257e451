"""Who depends on whom, with what is outside of the fleet as far as its agents speak of it. Pure.

The registry asks nobody outside. A server or model there is in trouble where an agent names it as its trouble, and is
taken to be well by the word of an agent that is well and counts on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pallas_contract import names
from pallas_contract.documents.health import State
from pallas_contract.fleet import providers
from pallas_registry.fleet_file import FleetReading
from pallas_registry.state.root_cause import concerns
from pallas_registry.state.status import Condition

Kind = Literal["agent", "gateway", "service", "server", "model", "group"]
"""`server` and `model` are outside of the fleet; a `group` stands for several (graph_layout)."""
NodeState = State | Literal["service", "suspect"]
"""One that is not probed is "service", and "suspect" where it is named as the trouble."""
Edges = tuple[tuple[str, str], ...]
"""Caller and called."""


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the graph."""

    name: str
    title: str
    state: NodeState
    root: bool = False
    kind: Kind = "agent"


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes, and edges between them."""

    nodes: tuple[Node, ...]
    edges: Edges


def build(
    reading: FleetReading,
    conditions: Mapping[str, Condition],
    depends: Mapping[str, tuple[str, ...]],
    causes: set[str],
    *,
    probed: Mapping[str, Condition],
) -> Graph:
    """Return the graph of the file's agents; `probed` has the services of which anything is known."""
    fleet = reading.fleet
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
    parts = [
        _gateway(reading, conditions, causes, probed),
        Graph(tuple(agents), edges),
        _services(reading, conditions, causes, edges=edges, probed=probed),
        _servers(reading, conditions),
        _model(reading, conditions),
    ]
    return Graph(tuple(node for part in parts for node in part.nodes), tuple(_all_edges(parts)))


def _all_edges(parts: Iterable[Graph]) -> dict[tuple[str, str], None]:
    return dict.fromkeys(edge for part in parts for edge in part.edges)


def _gateway(
    reading: FleetReading, conditions: Mapping[str, Condition], causes: set[str], probed: Mapping[str, Condition]
) -> Graph:
    gateway = reading.fleet.gateway
    if not gateway:
        return Graph((), ())
    condition = probed.get(names.GATEWAY)
    state: NodeState = condition.state if condition else "service"
    node = Node(names.GATEWAY, names.title(names.GATEWAY), state, names.GATEWAY in causes, "gateway")
    return Graph((node,), tuple((names.GATEWAY, agent) for agent in gateway.agents if agent in conditions))


def _services(
    reading: FleetReading,
    conditions: Mapping[str, Condition],
    causes: set[str],
    *,
    edges: Edges,
    probed: Mapping[str, Condition],
) -> Graph:
    """Return those that somebody depends on: another would be a box without a line."""
    services = reading.fleet.services
    used = {other for _, other in edges}
    suspects = {
        other
        for agent, other in edges
        if other in services and other not in probed and agent in causes and concerns(conditions[agent].reason, other)
    }
    nodes = (
        Node(name, names.title(name), probed[name].state, name in causes, "service")
        if name in probed
        else Node(name, names.title(name), "suspect" if name in suspects else "service", name in suspects, "service")
        for name in services
        if name in used
    )
    return Graph(tuple(nodes), ())


def _servers(reading: FleetReading, conditions: Mapping[str, Condition]) -> Graph:
    """Return the servers outside of the fleet. Which agents use one stands in their code: a line is their own word."""
    outside = {names.slug(server): server for server in reading.servers if not reading.fleet.is_member(server)}
    edges = tuple(
        (agent, outside[slug])
        for agent, condition in conditions.items()
        if agent in reading.fleet.agents and condition.state not in ("ok", "unknown")
        for slug in dict.fromkeys(map(names.slug, condition.reason.about))
        if slug in outside
    )
    named = {server for _, server in edges}
    nodes = (
        Node(server, names.title(server), "suspect" if server in named else "service", server in named, "server")
        for server in outside.values()
    )
    return Graph(tuple(nodes), edges)


def _model(reading: FleetReading, conditions: Mapping[str, Condition]) -> Graph:
    """Return the default model where it is outside of the fleet, with a line from each agent of the file."""
    fleet = reading.fleet
    provider = providers.split(reading.model)[0]
    within = any(service.provides == "openai" for service in fleet.services.values())
    if not reading.model or provider in providers.OFFLINE or within or reading.model in conditions:
        return Graph((), ())
    users = [agent for agent in fleet.agents if agent in conditions]
    blamed = any(conditions[agent].reason.code == "ProviderDown" for agent in users)
    trusted = any(conditions[agent].state == "ok" for agent in users)
    state: NodeState = "suspect" if blamed else "ok" if trusted else "service"
    node = Node(reading.model, reading.model, state, blamed, "model")
    return Graph((node,), tuple((agent, reading.model) for agent in users))
