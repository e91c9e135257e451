"""Who may reach whom in a planned fleet, and why: the graph that networks and policies are made from, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pallas_contract import names
from pallas_gen.plan import Plan

WORLD = "the world"


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """One allowed connection."""

    caller: str
    called: str
    why: str


def ways(plan: Plan) -> Iterator[Way]:
    """Every connection that the fleet file lets through, by caller."""
    for caller, called in plan.edges:
        hard = called in plan.workload(caller).waits_for
        yield Way(caller, called, "depends_on" if hard else "depends_on, not required")
    for item in plan.workloads:
        if item.kind == "agent":
            yield Way(names.REGISTRY, item.host, "the registry probes every agent")
            yield Way(
                item.host,
                names.REGISTRY,
                "in compose it may ask the registry, on whose network it is; on Kubernetes not",
            )
        if item.collector:
            at = f"{item.collector.host}:{item.collector.port}"
            network = ", in compose on the network `telemetry`" if item.collector.beside and plan.isolated else ""
            yield Way(item.host, at, f"telemetry: the collector of traces{network}")
        if item.egress:
            why = "egress: its model or one of its servers is outside"
            yield Way(item.host, WORLD, f"reach of registered agents: {', '.join(item.reach)}" if item.reach else why)
        if item.published:
            at = f", behind {item.public_url}" if item.public_url else ""
            yield Way(WORLD, item.host, f"published on port {item.published[1]}{at}")


def explain(plan: Plan) -> str:
    """A table of all ways, sorted, and what holds for everything else."""
    found = sorted(ways(plan))
    width = [max(len(getattr(way, part)) for way in found) for part in ("caller", "called")]
    lines = [f"{way.caller:<{width[0]}}  ->  {way.called:<{width[1]}}  {way.why}" for way in found]
    rest = "everything else is refused" if plan.isolated else "networks are flat: everything else is let through, too"
    return "\n".join([*lines, "", rest])
