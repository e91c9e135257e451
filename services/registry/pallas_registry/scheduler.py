"""When each replica is probed: every interval on the monotonic clock, spread out, never too many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any
from zlib import crc32

from pallas_contract import probe
from pallas_contract.probe import Result, Target
from pallas_registry.discovery import Endpoint

CONCURRENCY = 64
CONFIRMATIONS = 2
CONFIRM_TIMEOUT = 1.0
PAUSE = 0.25
"""Seconds between a failed probe and its confirmation."""

Probe = Callable[..., Awaitable[Result]]
"""The contract's `probe(target, *, era, timeout)`."""
Sleep = Callable[[float], Awaitable[None]]
Report = Callable[[str, Endpoint, Result], None]
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Prober:
    """One deep probe of an endpoint, confirmed before a good one is called bad."""

    def __init__(self, ask: Probe = probe.probe, *, sleep: Sleep = asyncio.sleep) -> None:
        self._ask, self._sleep = ask, sleep

    async def check(self, endpoint: Endpoint, before: Result | None) -> Result:
        """The finding now, after `before`. Never raises for anything the endpoint does.

        An error is believed after two quick confirmations, so one lost packet flips nothing; where the last finding
        was an error already there is nothing to flip, and a dead fleet is not probed three times as often.
        """
        target = Target(endpoint.url, endpoint.ip, deep=True)
        era = before.era if before else ""
        first = await self._ask(target, era=era, timeout=probe.TIMEOUT)
        if first.state != "error" or (before is not None and before.state == "error"):
            return first
        for _ in range(CONFIRMATIONS):
            await self._sleep(PAUSE)
            again = await self._ask(target, era=era, timeout=CONFIRM_TIMEOUT)
            if again.state != "error":
                return again
        return first


Check = Callable[[Endpoint, Result | None], Awaitable[Result]]


class Scheduler:
    """Keeps one watch per endpoint of each followed agent."""

    def __init__(
        self,
        check: Check,
        report: Report,
        *,
        spawn: Spawn,
        interval: Callable[[], float],
        clock: Callable[[], float],
        sleep: Sleep = asyncio.sleep,
        concurrency: int = CONCURRENCY,
    ) -> None:
        """`spawn` starts a task whose failure its owner hears of; `interval` in seconds, asked before each round."""
        self._check, self._report, self._spawn = check, report, spawn
        self._interval, self._clock, self._sleep = interval, clock, sleep
        self._slots = asyncio.Semaphore(concurrency)
        self._watches: dict[str, dict[Endpoint, asyncio.Task[None]]] = {}

    def follow(self, agent: str, endpoints: Sequence[Endpoint]) -> None:
        """Probe exactly these endpoints of `agent` from now on, new ones at once."""
        watches = self._watches.setdefault(agent, {})
        for gone in watches.keys() - set(endpoints):
            watches.pop(gone).cancel()
        for endpoint in endpoints:
            if endpoint not in watches:
                watches[endpoint] = self._spawn(self._watch(agent, endpoint))

    def retain(self, agents: Sequence[str]) -> None:
        """Stop following every agent that is not in `agents`."""
        for agent in self._watches.keys() - set(agents):
            for watch in self._watches.pop(agent).values():
                watch.cancel()

    async def _watch(self, agent: str, endpoint: Endpoint) -> None:
        result: Result | None = None
        due = self._clock()
        step = phase(agent, endpoint)  # after the first probe a part of the interval, so that probes spread out
        while True:
            async with self._slots:
                result = await self._check(endpoint, result)
            self._report(agent, endpoint, result)
            due = next_due(due, step * self._interval(), self._interval(), self._clock())
            step = 1.0
            await self._sleep(due - self._clock())


def phase(agent: str, endpoint: Endpoint) -> float:
    """Which part of the interval, above 0 and at most 1, this endpoint takes: the same in every run."""
    return (crc32(f"{agent} {endpoint.url} {endpoint.ip}".encode()) + 1) / 2**32


def next_due(due: float, step: float, interval: float, now: float) -> float:
    """The next round after `due`. Rounds that were missed (a paused machine) are left out, not made up for."""
    due += step
    return due if due > now else now + interval - (now - due) % interval
