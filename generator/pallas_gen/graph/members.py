"""What is drawn: the members of a plan, who calls whom, and how a registry says that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_gen.plan import Plan

UNKNOWN = "unknown"
"""State of a member of which a registry says nothing."""


@dataclass(frozen=True, slots=True)
class Health:
    """How a member is: a state of seed 000, and why it is not `ok`."""

    status: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Members by host name with their kind, in the plan's order without the registry, and who calls whom, sorted."""

    name: str
    kinds: Mapping[str, str]
    edges: Mapping[tuple[str, str], bool]
    """Caller and called -> whether the caller waits for it."""
    health: Mapping[str, Health] = field(default_factory=dict)
    """Of each member, where a registry was asked; empty where none was."""

    def called_by(self, caller: str) -> list[str]:
        """Return whom `caller` calls."""
        return [called for one, called in self.edges if one == caller]

    def state(self, member: str) -> str:
        """Return the state of a member; empty where no registry was asked."""
        return self.health[member].status if member in self.health else ""


def of(plan: Plan) -> Graph:
    """Return the graph of what agents, services and the gateway call; the registry, which probes all, is left out."""
    workloads = [workload for workload in plan.workloads if workload.host != names.REGISTRY]
    waits_for = {workload.host: workload.waits_for for workload in workloads}
    edges = {
        (caller, called): called in waits_for[caller]
        for caller, called in sorted(plan.edges)
        if caller in waits_for and called in waits_for
    }
    return Graph(plan.name, {workload.host: workload.kind for workload in workloads}, edges)


def with_health(graph: Graph, agents: Mapping[str, Any], services: Mapping[str, Any]) -> Graph:
    """Return the graph with states by a registry's documents of its agents (seed 000, section 1) and its services.

    A member that they do not list is `unknown`; who is not in the graph is left out.

    Raises:
        KeyError, TypeError, AttributeError: they are no such documents.
    """
    listed = {
        entry["server"]["name"].rpartition("/")[2]: entry["_meta"].get(server_json.HEALTH_META, {})
        for entry in agents["servers"]
    } | {names.slug(entry["name"]): entry for entry in services["services"]}
    health = {
        member: Health(str(said.get("status", UNKNOWN)), str(said.get("message", "")))
        for member in graph.kinds
        for said in [listed.get(member, {})]
    }
    return replace(graph, health=health)
