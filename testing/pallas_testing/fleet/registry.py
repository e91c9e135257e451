"""The fleet's registry: its documents, the changes it tells of, and what a test can demand of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from pallas_testing.fleet import http
from pallas_testing.fleet.events import Change, Events
from pallas_testing.project.fleet_file import slug

DOCUMENT = "/.well-known/mcp/server.json"
SERVICES = "/services"
_HEALTH = "io.pallas-kit/health"
_PROBED = 30.0
"""Seconds for a probe with its confirmations."""
_CATCHING_UP = 60.0
"""Most seconds until what the registry has told of has arrived."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of an agent as the registry last found it, and why: a message for people and a code."""

    status: str
    message: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


class Registry:
    """The registry at `url`; its changes count from now on."""

    def __init__(self, url: str, events: Events) -> None:
        self.url = url
        self._events = events
        self.catch_up()  # a change of before, which arrives late, is none of this test's
        self._mark = len(events.since())
        self._first: Mapping[str, State] = self.states()
        self._first_services: Mapping[str, State] = self.services()

    @property
    def events(self) -> list[Change]:
        """The changes of state since this test began."""
        return self._events.since(self._mark)

    def get(self, path: str) -> httpx.Response:
        """Return the answer to `GET path`, whatever its status.

        Raises:
            httpx.HTTPError: there is none.
        """
        return http.get(self.url + path)

    def document(self) -> dict[str, Any]:
        """Return the catalogue (seed 000 section 1).

        Raises:
            httpx.HTTPError: the registry does not answer, or not with 200.
        """
        document: dict[str, Any] = self.get(DOCUMENT).raise_for_status().json()
        return document

    def states(self) -> dict[str, State]:
        """Return the agents that are listed, by their names in the registry, with their states."""
        return states(self.document())

    def services(self) -> dict[str, State]:
        """Return the services that the fleet brings along, by their names in agents.yaml, with their states."""
        return services(self.get(SERVICES).raise_for_status().json())

    def as_before(self, service: str) -> bool:
        """Return whether a service is in the state in which the test found it."""
        before = self._first_services.get(service, State("unlisted"))
        return self.services().get(service, State("unlisted")).status == before.status

    def state(self, agent: str) -> State:
        """Return the state of an agent, `unlisted` for one that is not in the catalogue."""
        return self.states().get(slug(agent), State("unlisted"))

    def recheck(self, agent: str) -> int:
        """Have the registry probe an agent now; return the HTTP status: 200 when it has, 429 where it is not its turn.

        Raises:
            httpx.HTTPError: the registry does not answer.
        """
        return http.post(f"{self.url}/agents/{agent}/recheck", timeout=_PROBED).status_code

    def catch_up(self) -> None:
        """Wait until all that `/events` has told so far has arrived here."""
        self._events.catch_up(_CATCHING_UP)

    def saw(self, agent: str, *statuses: str, within: float = 20.0) -> bool:
        """Return True once the agent was in these states in this order since the test began, others between them.

        The first may be the one in which the test found it. Waits `within` seconds at most.

        Raises:
            AssertionError: it was not; it shows the states that were seen, and which one never came.
        """
        __tracebackhide__ = True
        end = time.monotonic() + within
        while True:
            count = len(self._events.since())
            history = self._sequence(agent)
            lacking = _lacking(statuses, history)
            remaining = end - time.monotonic()
            if not lacking:
                return True
            if remaining <= 0:
                break
            self._events.wait(count, remaining)
        expected = " -> ".join(statuses)
        reasons = [str(change) for change in self.events if slug(change.agent) == slug(agent)]
        lines = [f"{agent} was not seen {expected} within {within:g} s", f"seen: {' -> '.join(history)}"]
        raise AssertionError("\n".join([*lines, f"not any more: {' -> '.join(lacking)}", *reasons]))

    def _sequence(self, agent: str) -> list[str]:
        first = self._first.get(slug(agent), State("unlisted")).status
        return [first, *(change.new for change in self.events if slug(change.agent) == slug(agent))]


def states(document: Mapping[str, Any]) -> dict[str, State]:
    """Return the states in a catalogue of the kit's registry, by the last part of the agents' names."""
    by_name = {}
    for entry in document["servers"]:
        health = entry["_meta"].get(_HEALTH, {})
        state = State(health.get("status", "unknown"), health.get("message", ""), health.get("reason", ""))
        by_name[entry["server"]["name"].rpartition("/")[2]] = state
    return by_name


def services(document: Mapping[str, Any]) -> dict[str, State]:
    """Return the states in the registry's list of services; `not probed` where nobody can ask, which is no trouble."""
    return {
        entry["name"]: State(entry["status"], entry.get("message", ""), entry.get("reason", ""))
        for entry in document["services"]
    }


def _lacking(expected: Sequence[str], history: Sequence[str]) -> Sequence[str]:
    """Return what is left of `expected` when `history` has been gone through once."""
    number = 0
    for status in history:
        if number < len(expected) and status == expected[number]:
            number += 1
    return expected[number:]
