"""The order in which the members of a fleet start, from `depends_on` (seed 001, Startup Sequence)."""

from __future__ import annotations

from pallas_contract.fleet.resolved import ResolvedFleet


def waves(fleet: ResolvedFleet) -> list[list[str]]:
    """Agents and services in start order: each wave waits for hard edges into the waves before it."""
    left = {name: hard_edges(fleet, name) for name in [*fleet.services, *fleet.agents]}
    order: list[list[str]] = []
    while left:
        ready = sorted(name for name, needs in left.items() if not needs & left.keys())
        if not ready:  # only with a cycle, which `problems` reports
            return [*order, sorted(left)]
        order.append(ready)
        for name in ready:
            del left[name]
    return order


def hard_edges(fleet: ResolvedFleet, name: str) -> set[str]:
    """What must be ready before `name` starts."""
    agent = fleet.agents.get(name)
    return {peer for peer, need in agent.depends_on.items() if need.required} if agent else set()


def subagents(fleet: ResolvedFleet) -> set[str]:
    """Agents that another agent depends on (seed 001, Startup Sequence)."""
    return {peer for agent in fleet.agents.values() for peer in agent.depends_on if peer in fleet.agents}
