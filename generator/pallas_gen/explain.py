"""The graph that networks and policies are made from, in words: who may reach whom in a fleet, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pallas_contract import names
from pallas_gen.plan import Plan, Workload

WORLD = "the world"
_BACK = "in compose it may ask the registry, on whose network it is; on Kubernetes not"


@dataclass(frozen=True, slots=True, order=True)
class Connection:
    """One allowed connection."""

    caller: str
    called: str
    why: str


def connections(plan: Plan) -> Iterator[Connection]:
    """Every connection that the fleet file lets through, by caller."""
    probed = plan.workload(names.REGISTRY).calls
    for caller, called in plan.edges:
        yield Connection(caller, called, _declared(plan, plan.workload(caller), called))
    for workload in plan.workloads:
        if workload.kind == "agent":
            yield Connection(names.REGISTRY, workload.host, "the registry probes every agent")
            yield Connection(workload.host, names.REGISTRY, _BACK)
        elif workload.host in probed:
            asks = "the gateway" if workload.kind == "gateway" else "it as its `health` says"
            yield Connection(names.REGISTRY, workload.host, f"the registry probes {asks}")
            if names.REGISTRY not in workload.calls:
                yield Connection(workload.host, names.REGISTRY, _BACK)
        if workload.collector:
            at = f"{workload.collector.host}:{workload.collector.port}"
            network = ", in compose on the network `telemetry`" if workload.collector.beside and plan.isolated else ""
            yield Connection(workload.host, at, f"telemetry: the collector of traces{network}")
        if workload.egress:
            yield Connection(workload.host, WORLD, "; ".join(workload.egress))
        if workload.published:
            at = f", behind {workload.public_url}" if workload.public_url else ""
            yield Connection(WORLD, workload.host, f"published on port {workload.published[1]}{at}")


def _declared(plan: Plan, caller: Workload, called: str) -> str:
    """Return the key of agents.yaml by which `caller` may call."""
    if caller.kind == "service":
        return "calls"
    if caller.kind == "gateway":
        if called in caller.through:
            return "through: gateway"
        if called == names.REGISTRY:
            return "gateway.registered: where agents outside of the file are"
        return "gateway.tools" if plan.workload(called).kind == "service" else "gateway.agents"
    soft = "" if called in caller.waits_for else ", not required"
    if called == names.GATEWAY:
        return f"depends_on{soft} ({', '.join(caller.through)}, through the gateway)"
    return f"depends_on{soft}"


def explain(plan: Plan) -> str:
    """Return a table of all connections, sorted, and what holds for everything else."""
    table = sorted(connections(plan))
    width = [max(len(getattr(row, part)) for row in table) for part in ("caller", "called")]
    lines = [f"{row.caller:<{width[0]}}  ->  {row.called:<{width[1]}}  {row.why}" for row in table]
    rest = "everything else is refused" if plan.isolated else "networks are flat: everything else is let through, too"
    return "\n".join([*lines, "", rest])
