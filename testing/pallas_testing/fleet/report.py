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
_NOT_PROBED = "NotProbed"
"""The registry's reason for a service that it cannot ask (docs/registry.md)."""


def sections(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield title and text of each section. Nothing raises: a report must not hide the failure that it is about."""
    try:
        states = fleet.registry.states()
        services = fleet.registry.services()
        lines = [f"{agent}: {state}" for agent, state in states.items()]
        lines += [f"{service}: {state}" for service, state in services.items() if not _is_well(state)]
        lines += [f"(change) {change}" for change in fleet.registry.events]
    except Exception as error:  # whatever a registry that is not well answers
        states = services = {}
        lines = [f"the registry does not answer: {error}", fleet.ended()]
    yield f"fleet on {fleet.target}: registry", "\n".join(filter(None, [*lines, *fleet.faults.done]))
    if fleet.answers:
        yield "fleet: calls behind the last answer", fleet.answers[-1].tree
    yield from unwell({**of_agents(fleet.agents, states), **services}, fleet.logs)


def of_agents(agents: Iterable[str], states: Mapping[str, State]) -> dict[str, State]:
    """Return the states by names in agents.yaml, `unlisted` for one that the registry does not name."""
    return {agent: states.get(slug(agent), State("unlisted")) for agent in agents}


def unwell(members: Mapping[str, State], logs: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield the end of the log of every member that is not well."""
    for member, state in members.items():
        if not _is_well(state):
            try:
                text = logs(member)
            except Exception as error:  # its container or pod has just gone
                text = f"it cannot be read: {error}"
            yield f"fleet: log of {member} ({state.status})", "\n".join(text.splitlines()[-_LINES:])


def _is_well(state: State) -> bool:
    return state.status == "ok" or state.reason == _NOT_PROBED
