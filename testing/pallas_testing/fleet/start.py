"""From agents.yaml to a fleet whose registry says that all is well, and back to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from pallas_testing.fleet import http, registry, report, waiting
from pallas_testing.fleet.events import Events
from pallas_testing.fleet.registry import State
from pallas_testing.project import fleet_file
from pallas_testing.project.claims import NothingFree
from pallas_testing.project.fleet_file import FleetFile, NoFleetFile, slug
from pallas_testing.targets import table
from pallas_testing.targets.base import CannotStart, Order, Target

PATIENCE = 300.0
"""Seconds until every agent has to be up: about 10 for four agents on two cores, far more where these are shared."""

_INPUT_REFUSED = "InputRefused"
"""The registry's reason for an agent that will not start (docs/registry.md, Reasons)."""
_READY = "/readyz"


@dataclass(frozen=True, slots=True)
class Running:
    """A fleet that is up, and what its registry tells."""

    target: Target
    events: Events
    expected: Mapping[str, str]
    """The state in which each agent came up, by its name in the registry."""


class _Ended(Exception):
    """The fleet has ended before it was up."""


class _Refused(Exception):
    """Agents have refused their input: they will not be up, however long one waits."""


@contextmanager
def running(name: str, order: Order, expected: Mapping[str, str], *, patience: float = PATIENCE) -> Iterator[Running]:
    """Yield the fleet of an agents.yaml on the target called `name`, up; nothing of it is left afterwards.

    It is up when the registry says `ok` of every agent, or the status that `expected` has for it, and its gateway says
    that it is ready and reaches those behind it, where it has one that this machine reaches.

    Raises:
        CannotStart: it does not come up; the text says why, with the logs of those that are not well.
    """
    target = table.target(name, order)
    try:
        try:
            target.start()
        except (NoFleetFile, NothingFree) as error:
            raise CannotStart(str(error)) from None
        expected_states = {slug(agent): expected.get(agent, "ok") for agent in target.file.agents}
        _until_up(target, expected_states, patience)
        events = Events(target.url(fleet_file.REGISTRY))
        try:
            yield Running(target, events, expected_states)
        finally:
            events.close()
    finally:
        target.stop()


def _until_up(target: Target, expected_states: Mapping[str, str], patience: float) -> None:
    states: dict[str, State] = {}

    def look() -> str:
        nonlocal states
        if reason := target.ended():
            raise _Ended(reason)
        url = target.url(fleet_file.REGISTRY) + registry.DOCUMENT
        document = http.get(url).raise_for_status().json()
        states = registry.states(document)
        different = [
            agent for agent, status in expected_states.items() if states.get(agent, State("")).status != status
        ]
        lines = [f"{agent} {states.get(agent, 'unlisted')}" for agent in different]
        if any(states[agent].reason == _INPUT_REFUSED for agent in different if agent in states):
            raise _Refused("an agent refuses its input:\n" + "\n".join(lines))
        return "; ".join(lines) or target.pending() or unready_gateway(target, expected_states)

    try:
        waiting.until(look, lambda text: not text, what="the fleet", within=patience, fatal=(_Ended, _Refused))
    except (waiting.NotYet, _Ended, _Refused) as error:
        members = report.of_agents(target.file.agents, states) | _services(target)
        logs = [f"--- {title}\n{text}" for title, text in report.unwell(members, target.logs)]
        raise CannotStart("\n".join([str(error), *([] if isinstance(error, _Ended) else logs)])) from None


def unready_gateway(target: Target, expected_states: Mapping[str, str]) -> str:
    """Return why the gateway of a fleet is not ready; empty where it is, there is none or nobody here reaches it.

    It has to reach those behind it, but for agents that are expected to be in `error`, and for services of whose
    callers none is expected to be `ok`.

    Raises:
        httpx.HTTPError: it does not answer.
    """
    if fleet_file.GATEWAY not in target.file.members:
        return ""
    try:
        url = target.url(fleet_file.GATEWAY)
    except LookupError:  # not published
        return ""
    status = http.get(url + _READY).status_code
    if status != httpx.codes.OK:
        return f"the gateway answers /readyz with {status}"
    members = [member for member in target.file.behind_gateway if _comes_up(member, target.file, expected_states)]
    reasons = target.unreached(fleet_file.GATEWAY, members)
    return f"the gateway does not reach those behind it: {reasons}" if reasons else ""


def _comes_up(member: str, file: FleetFile, expected_states: Mapping[str, str]) -> bool:
    """Return whether an agent is expected to come up; of a service, whether one of its callers is, and well."""
    if member not in file.services:
        return expected_states.get(slug(member)) != "error"
    callers = [slug(agent) for agent, names in file.calls.items() if slug(member) in map(slug, names)]
    return not callers or any(expected_states.get(caller) == "ok" for caller in callers)


def _services(target: Target) -> dict[str, State]:
    """Return the services as the registry last found them, none where it does not answer."""
    try:
        url = target.url(fleet_file.REGISTRY) + registry.SERVICES
        return registry.services(http.get(url).json())
    except Exception:  # the failure that is told has to be the first one
        return {}
