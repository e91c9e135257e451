"""The sections beneath a failed test: who was unwell, what the registry says of it, what the agents did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pallas_testing.fleet.registry import State
from pallas_testing.project.fleet_file import slug

if TYPE_CHECKING:
    from pallas_testing.fleet.face import Fleet

_LINES = 30
"""Last lines of a log that are shown."""


def sections(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield title and text of each section. Nothing raises: a report must not hide the failure that it is about."""
    try:
        states = fleet.registry.states()
        lines = [f"{agent}: {state}" for agent, state in states.items()]
        lines += [f"(change) {change}" for change in fleet.registry.events]
    except Exception as error:  # whatever a registry that is not well answers
        states = {}
        lines = [f"the registry does not answer: {error}", fleet.ended()]
    yield f"fleet on {fleet.target}: registry", "\n".join(filter(None, [*lines, *fleet.faults.done]))
    if fleet.answers:
        yield "fleet: calls behind the last answer", fleet.answers[-1].tree
    yield from unwell(fleet.agents, states, fleet.logs)


def unwell(agents: Iterable[str], states: Mapping[str, State], logs: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield the end of the log of every agent that is not `ok`."""
    for agent in agents:
        state = states.get(slug(agent), State("unlisted"))
        if state.status != "ok":
            tail = logs(agent).splitlines()[-_LINES:]
            yield f"fleet: log of {agent} ({state.status})", "\n".join(tail)
