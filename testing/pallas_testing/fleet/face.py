"""`Fleet`: one running fleet as one test has it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_testing.answers.answer import Answer
from pallas_testing.fleet import disclosure, http, waiting
from pallas_testing.fleet.agent import Agent
from pallas_testing.fleet.faults import Faults
from pallas_testing.fleet.registry import Registry
from pallas_testing.fleet.start import PATIENCE, Running, unready_gateway
from pallas_testing.project.fleet_file import REGISTRY, slug
from pallas_testing.targets.base import FaultEnded

if TYPE_CHECKING:
    from pallas_testing.daedalus.health import Health

_GAUGES = {"pallas_sessions": "session(s) open", "pallas_calls_in_flight": "call(s) under way"}
"""Metrics of an agent that are 0 while nobody uses it; one that remembers nothing has no sessions to count."""
_OK = 200


class Fleet:
    """A running fleet from the point of view of one test. Members are called by their names in agents.yaml."""

    def __init__(self, running: Running) -> None:
        self._target = running.target
        self._expected = running.expected
        self.registry = Registry(self._target.url(REGISTRY), running.events)
        self.faults = Faults(self._target)
        self.answers: list[Answer] = []
        """The answers that this test has got, oldest first."""

    @property
    def target(self) -> str:
        """Name of the target: `processes`, `compose` or `cluster`."""
        return self._target.name

    @property
    def folder(self) -> Path:
        """The copy of the project that runs, with what was generated from it."""
        return self._target.file.path.parent

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents in agents.yaml."""
        return tuple(self._target.file.agents)

    def agent(self, name: str) -> Agent:
        """Return an agent, to be asked.

        Raises:
            KeyError: agents.yaml has no agent of this name.
        """
        if name not in self._target.file.agents:
            raise KeyError(f"agents.yaml has no agent {name}: {', '.join(self.agents)}")
        return Agent(name, f"{self.url(name)}/mcp", self._target.file.calls, self.answers.append)

    def url(self, member: str) -> str:
        """Return `http://host:port` at which this machine reaches an agent, or `registry`."""
        return self._target.url(member)

    def health(self, agent: str, *, token: str | None = None) -> Health:
        """Return what an agent says of itself (`get_health`, seed 000 section 2); `error` where it does not answer."""
        from pallas_testing.daedalus import health  # noqa: PLC0415 - imports the SDK, which takes a second
        from pallas_testing.fleet.connection import connect  # noqa: PLC0415 - imports the same

        url = f"{self.url(agent)}/mcp"
        checking = health.check(url, connection=connect(url, token=token))
        with ThreadPoolExecutor(1) as executor:  # the caller's thread may have a loop of its own
            return executor.submit(asyncio.run, checking).result()

    def logs(self, member: str) -> str:
        """Return all that a member has printed so far."""
        return self._target.logs(member)

    def wait_for(self, condition: Callable[[], object] | Mapping[str, str], *, within: float = 60.0) -> None:
        """Wait until a function returns something true, or the registry has these agents in these states.

        Raises:
            AssertionError: not within `within` seconds; it says what was seen, and when.
        """
        __tracebackhide__ = True
        if callable(condition):
            name = getattr(condition, "__qualname__", repr(condition))
            waiting.until(condition, bool, what=name, within=within)
            return
        expected = {slug(agent): status for agent, status in condition.items()}

        def different() -> dict[str, str]:
            states = self.registry.states()
            return {
                agent: str(states.get(agent, "unlisted"))
                for agent, status in expected.items()
                if agent not in states or states[agent].status != status
            }

        waiting.until(different, lambda states: not states, what=_states(expected), within=within)

    def ended(self) -> str:
        """Return why the fleet as a whole has ended, empty while it runs."""
        return self._target.ended()

    def restore(self) -> None:
        """Undo what this test has done to the fleet, and wait until it is up again.

        Raises:
            AssertionError: it does not come up again, or a fault had ended by itself (FaultEnded).
        """
        try:
            self.faults.undo()
        except FaultEnded:  # for this test alone: the next one gets the fleet as it should be
            self._until_up_again()
            raise
        self._until_up_again()

    def _until_up_again(self) -> None:
        if not self.faults.done:
            return
        for member in self.faults.members:
            self._until_back(member)
        for caller in self._callers(self.faults.members):  # what was last found of them may be older than the fault
            self._rechecked(caller)
        look = partial(unready_gateway, self._target, self._expected)
        waiting.until(look, lambda text: not text, what="the gateway", within=PATIENCE)
        self.wait_for(self._expected, within=PATIENCE)

    def _until_back(self, member: str) -> None:
        """Wait until a member answers by itself, then have the registry look: it may not have missed it yet."""
        if member in self._target.file.services:
            waiting.until(lambda: self._target.answers(member), bool, what=f"{member} itself", within=PATIENCE)
            waiting.until(lambda: self.registry.as_before(member), bool, what=f"a look at {member}", within=PATIENCE)
            return
        if member not in self._target.file.agents or self._expected.get(slug(member)) == "error":
            return
        waiting.until(lambda: self._ready(member), _is_ok, what=f"{member} itself", within=PATIENCE)
        self._rechecked(member)

    def _callers(self, members: Collection[str]) -> list[str]:
        called = set(map(slug, members))
        calls = self._target.file.calls.items()
        callers = [agent for agent, names in calls if called & set(map(slug, names)) and slug(agent) not in called]
        return [agent for agent in callers if self._expected.get(slug(agent)) != "error"]

    def _rechecked(self, agent: str) -> None:
        what = f"a probe of {agent}"
        waiting.until(lambda: self.registry.recheck(agent), _is_ok, what=what, within=PATIENCE)

    def _ready(self, member: str) -> int:
        try:
            url = self.url(member)
        except LookupError:  # not published: nobody but the registry reaches it
            return _OK
        return http.get(f"{url}/readyz").status_code

    def no_sessions_left(self, *, within: float = 10.0) -> bool:
        """Return True once no agent has a session open or a call under way.

        Raises:
            AssertionError: some have, after `within` seconds; it says which.
        """
        __tracebackhide__ = True
        waiting.until(self._used, lambda text: not text, what="agents that nobody uses", within=within)
        return True

    def no_secret(self, canary: str) -> bool:
        """Return True where a planted secret is in nothing that the fleet shows, as it is or in base64.

        That is: logs, documents, pages and metrics of the registry and the agents, changes and answers of this test,
        generated files, and what the target tells of its containers or objects.

        Raises:
            AssertionError: it is; it says where, and never repeats it.
        """
        __tracebackhide__ = True
        places = list(disclosure.places(self._target, self.registry, self.answers, canary))
        if places:
            raise AssertionError("\n".join(["the secret is in", *places]))
        return True

    def _used(self) -> str:
        used = []
        for agent in self.agents:
            text = http.get(f"{self.url(agent)}/metrics").raise_for_status().text
            values = {gauge: re.search(rf"^{gauge} (\S+)$", text, re.MULTILINE) for gauge in _GAUGES}
            if not any(values.values()):
                used.append(f"{agent}: its metrics have none of {', '.join(_GAUGES)}")
            counts = {gauge: float(match[1]) for gauge, match in values.items() if match}
            used += [f"{agent}: {count:g} {_GAUGES[gauge]}" for gauge, count in counts.items() if count]
        return "; ".join(used)


def _is_ok(status: int) -> bool:
    return status == _OK


def _states(states: Mapping[str, str]) -> str:
    return ", ".join(f"{agent} {status}" for agent, status in states.items())
