"""Probing an agent now because somebody asks: one agent at a time, and not too often, whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.scheduler import Check, Report

SPACING = 1.0
"""Least seconds between the starts of two rechecks."""
CONCURRENCY = 16
"""Most replicas of the agent asked at once."""


class Busy(Exception):
    """Another recheck is under way, or was just now; `seconds` until it makes sense to ask again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"another recheck is under way or was just now: try again in {seconds} s")
        self.seconds = seconds


class Recheck:
    """The agents themselves pay for probes, so strangers get few of them."""

    def __init__(
        self,
        check: Check,
        report: Report,
        *,
        endpoints: Callable[[str], Sequence[Endpoint]],
        before: Callable[[str, Endpoint], Result | None],
        clock: Callable[[], float],
        spacing: float = SPACING,
    ) -> None:
        """`endpoints` raises KeyError for an agent that is not in the file; `spacing` in seconds of `clock`."""
        self._check = check
        self._report = report
        self._endpoints = endpoints
        self._before = before
        self._clock = clock
        self._spacing = spacing
        self._running = False
        self._free_at = clock()

    async def __call__(self, agent: str) -> None:
        """Probe all replicas and report what they answer.

        Raises:
            KeyError: there is no such agent.
            Busy: it is not the caller's turn.
        """
        endpoints = self._endpoints(agent)
        wait = self._free_at - self._clock()
        if self._running or wait > 0:
            raise Busy(max(1, ceil(wait)))
        self._running = True
        self._free_at = self._clock() + self._spacing
        slots = asyncio.Semaphore(CONCURRENCY)

        async def probe(endpoint: Endpoint) -> None:
            async with slots:
                before = self._before(agent, endpoint)
                # all is due: on a new connection, since who asks may get in by none
                result = await self._check(endpoint, before and replace(before, listed=None))
            self._report(agent, endpoint, result)

        try:
            await asyncio.gather(*map(probe, endpoints))
        finally:
            self._running = False
