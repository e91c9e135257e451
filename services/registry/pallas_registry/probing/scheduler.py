"""Probes of each replica: every interval on the monotonic clock, spread out, never too many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any
from zlib import crc32

import structlog

from pallas_contract import names
from pallas_contract.documents.reason import Reason
from pallas_contract.probe import probe
from pallas_contract.probe.probe import Line, Result, Target
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.kept_lines import KeptLines
from pallas_registry.timing import Sleep, surviving

CONCURRENCY = 64
"""Probes under way that have hardly begun: more at once would only wait for each other."""
YOUNG = 0.5
"""Seconds after which a probe is one that waits for a silent agent, and holds up no other."""
MOST = 1024
"""Probes under way in all: each has a connection."""
CONFIRMATIONS = 2
TOOLS_EVERY = 60.0
"""Seconds between two questions for the tools of one replica: they change with a release, not with the weather."""

TOGETHER = 10
"""Probes that begin in one turn of the loop: to wake a process, and the one that it asks, costs more than to ask."""
GRAIN = 0.25
"""Most seconds that a probe waits for others to begin with."""

STARTING = 60.0
STARTING_EVERY = 1.0
"""Seconds for which, and at most between which, one that never answered is asked again: a fleet is seen to be up."""
STARTING_RATE = 40.0
"""Such questions a second of one scheduler, where that asks each sooner; no more often than `Limits.starting` says."""

WAIT = 30.0
"""Most seconds that an agent's Retry-After is heeded for: it may have peace, but not go unwatched. Half of the shortest
time after which the alert PallasRegistryStale fires."""

Probe = Callable[..., Awaitable[Result]]
"""The contract's `probe(target, *, era, timeout)`."""
Before = Callable[[str, Endpoint], Result | None]
"""The last finding, whoever asked for it."""
Report = Callable[[str, Endpoint, Result], None]
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

_log = structlog.get_logger()


class Prober:
    """One deep probe of an endpoint, confirmed before a good one is called bad."""

    def __init__(
        self,
        ask: Probe = probe.probe,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        lines: KeptLines | None = None,
    ) -> None:
        """`clock` is the one that probes date their findings by.

        With `lines` an agent that is well is asked again on the connection of before, until its tools are due.
        """
        self._lines = lines
        self._ask = ask
        self._sleep = sleep
        self._clock = clock

    async def check(self, endpoint: Endpoint, before: Result | None) -> Result:
        """Return the result now, after `before`. Never raises, whatever the endpoint or a probe does.

        An error is believed after two quick confirmations, so one lost packet flips nothing; where the last finding
        was an error already there is nothing to flip, and a dead fleet is not probed three times as often.
        """
        result = await self._confirmed(endpoint, before)
        same = before is not None and result.version in ("", before.version)
        if before is None or not same or result.tools is not None:
            return result
        # what one list that could not be had says of the tools is nothing
        return replace(result, tools=before.tools, listed=before.listed if result.listed is None else result.listed)

    async def _confirmed(self, endpoint: Endpoint, before: Result | None) -> Result:
        listed = before.listed if before else None
        due = listed is None or self._clock() - listed >= TOOLS_EVERY
        target = _target(endpoint, tools=due)
        era = before.era if before else ""
        first = await self._first(endpoint, target, era)
        if first.state != "error" or (before is not None and before.state == "error"):
            return first
        for _ in range(CONFIRMATIONS):
            await self._sleep(probe.PAUSE)
            again = await self._once(target, era, probe.patience(before))
            if again.state != "error":
                return again
        return first

    async def _first(self, endpoint: Endpoint, target: Target, era: str) -> Result:
        """Probe on the line that is kept, where there may be one: for agents only, since services are asked little."""
        if self._lines is None or not target.deep:
            return await self._once(target, era, probe.TIMEOUT)
        line = self._lines.take(endpoint)
        if target.tools:  # once a minute all is asked, and a new connection is what others need too
            line.close()
        try:
            return await self._once(target, era, probe.TIMEOUT, line=line)
        finally:
            self._lines.give_back(endpoint, line)

    async def _once(self, target: Target, era: str, timeout: float, **more: Line) -> Result:
        """Probe once. A probe that raises met an answer nobody had thought of: no reason to stop watching others."""
        try:
            result = await self._ask(target, era=era, timeout=timeout, **more)
        except Exception as error:
            _log.exception("a probe failed by itself", url=target.url, address=target.address)
            reason = Reason("ProbeFailed", f"the probe failed by itself: {type(error).__name__}")
            return Result("error", reason, era)
        if target.ours and result.name == names.REGISTRY_SERVER:  # ours would tell us what we say of it, and we that
            return Result("error", Reason("NotAnAgent", "a registry answers there, not an agent"), result.era)
        return result


def _target(endpoint: Endpoint, *, tools: bool) -> Target:
    """Return what is asked: an agent for its own word and `tools`, a service only what the fleet file says."""
    if endpoint.kind == "agent":
        return Target(endpoint.url, endpoint.ip, deep=True, tools=tools, ours=True)
    if endpoint.kind in ("get", "tcp"):
        return Target(endpoint.url, endpoint.ip, plain=endpoint.kind)
    return Target(endpoint.url, endpoint.ip, sse=endpoint.kind == "sse")


Check = Callable[[Endpoint, Result | None], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most probes under way: `slots` that have hardly begun, for `young` seconds, and `connections` in all.

    `starting` are the least seconds between two of one that never answered.
    """

    slots: int = CONCURRENCY
    connections: int = MOST
    young: float = YOUNG
    starting: float = GRAIN


@dataclass(frozen=True, slots=True)
class Pace:
    """The time that probes go by: `interval` in seconds, asked before each round, by `clock` and `sleep`."""

    interval: Callable[[], float]
    clock: Callable[[], float]
    sleep: Sleep = asyncio.sleep


class Scheduler:
    """The watches: one per endpoint of each followed agent."""

    def __init__(
        self,
        check: Check,
        report: Report,
        *,
        before: Before,
        spawn: Spawn,
        pace: Pace,
        late: Callable[[float], None] = lambda _: None,
        limits: Limits = Limits(),
    ) -> None:
        """`spawn` starts a task whose failure its owner hears of; `late` hears how many seconds late a probe is.

        `before` is asked ahead of each probe, for a recheck may have found something since.
        """
        self._check = check
        self._report = report
        self._spawn = spawn
        self._interval = pace.interval
        self._clock = pace.clock
        self._sleep = pace.sleep
        self._late = late
        self._slots = asyncio.Semaphore(limits.slots)
        self._connections = asyncio.Semaphore(limits.connections)
        self._young = limits.young
        self._starting = limits.starting
        self._before = before
        self._watches: dict[str, dict[Endpoint, asyncio.Task[None]]] = {}
        self._count = 0

    def follow(self, agent: str, endpoints: Sequence[Endpoint]) -> None:
        """Probe exactly these endpoints of `agent` from now on, new ones at once."""
        watches = self._watches.setdefault(agent, {})
        for gone in watches.keys() - set(endpoints):
            watches.pop(gone).cancel()
            self._count -= 1
        for endpoint in endpoints:
            if endpoint not in watches:
                self._count += 1
                watches[endpoint] = self._spawn(self._watch(agent, endpoint))

    def retain(self, agents: Sequence[str]) -> None:
        """Stop following every agent that is not in `agents`."""
        for agent in self._watches.keys() - set(agents):
            for watch in self._watches.pop(agent).values():
                self._count -= 1
                watch.cancel()

    async def _watch(self, agent: str, endpoint: Endpoint) -> None:
        started = due = begin = self._clock()
        starting = True
        step = phase(agent, endpoint)  # after the first probe a part of the interval, so that probes spread out
        while True:
            async with self._turn():
                self._late(max(0.0, self._clock() - begin))
                result = await self._check(endpoint, self._before(agent, endpoint))
            with surviving("probes"):
                self._report(agent, endpoint, result)
            now = self._clock()
            starting = starting and result.state == "error" and now - started < STARTING
            if starting:
                due = now + min(STARTING_EVERY, self._interval(), max(self._starting, self._count / STARTING_RATE))
            else:
                due = next_due(due, step * self._interval(), self._interval(), now)
                step = 1.0
            due = max(due, now + min(result.wait, WAIT))
            begin = due if starting else together(due, self._interval(), self._count)
            await self._sleep(begin - self._clock())

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold a connection among the probes under way, and for a while a slot among those that have hardly begun.

        Silent agents fill up connections for seconds; with slots only, a few dozen would delay the probes of all.
        """
        async with self._connections:
            await self._slots.acquire()
            slot = ExitStack()
            slot.callback(self._slots.release)
            young = asyncio.get_running_loop().call_later(self._young, slot.close)
            try:
                yield
            finally:
                young.cancel()
                slot.close()


def phase(agent: str, endpoint: Endpoint) -> float:
    """Return the part of the interval, above 0 and at most 1, that this endpoint takes: the same in every run."""
    return (crc32(f"{agent} {endpoint.url} {endpoint.ip}".encode()) + 1) / 2**32


def together(due: float, interval: float, count: int) -> float:
    """Return the time at or after `due` at which a probe begins, with `TOGETHER` of `count` or `GRAIN` seconds' worth.

    The interval is a whole number of such steps, so that a replica is asked as often as before.
    """
    steps = max(ceil(count / TOGETHER), ceil(interval / GRAIN))
    return ceil(due * steps / interval) * interval / steps


def next_due(due: float, step: float, interval: float, now: float) -> float:
    """Return the time of the next round after `due`. Missed ones (a paused machine) are not made up for."""
    due += step
    return due if due > now else now + interval - (now - due) % interval
