"""The order in which the members of a fleet start, from `depends_on` (seed 001, Startup Sequence)."""

from __future__ import annotations

from graphlib import TopologicalSorter

from pallas_contract.fleet.resolved import ResolvedFleet


def waves(fleet: ResolvedFleet) -> list[list[str]]:
    """Return agents and services in start order: each wave waits for hard edges into the waves before it.

    Raises:
        graphlib.CycleError: agents wait for each other; `validate` refuses such a fleet.
    """
    sorter = TopologicalSorter({name: agent.required for name, agent in fleet.agents.items()})
    for name in fleet.services:
        sorter.add(name)
    sorter.prepare()
    order: list[list[str]] = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sorter.done(*ready)
        order.append(sorted(ready))
    return order


def subagents(fleet: ResolvedFleet) -> set[str]:
    """Return the agents that another agent depends on (seed 001, Startup Sequence)."""
    return {peer for agent in fleet.agents.values() for peer in agent.depends_on if peer in fleet.agents}
