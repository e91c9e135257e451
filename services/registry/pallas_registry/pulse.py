"""How late the registry itself is, so that a process without a processor does not call its agents silent.

Deadlines by the clock pass while a process is stopped or starved, and an answer that came meanwhile is read after them.
So what waits for others here counts only the time in which the event loop ran.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PERIOD = 0.1
"""Seconds between two beats."""
TOLERANCE = 0.05
"""Seconds that a beat may be late: a busy loop is not a stopped one."""


class Pulse:
    """A timer that rings ten times a second, or later; until `start` no time is lost."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lost, self._due = clock, 0.0, float("inf")

    def start(self) -> None:
        """Beat for as long as the running loop does."""
        now = self._clock()
        self._lost += self._late(now)
        self._due = now + PERIOD
        asyncio.get_running_loop().call_later(PERIOD, self.start)

    @property
    def lost(self) -> float:
        """Seconds since the start in which the event loop should have run and did not."""
        return self._lost + self._late(self._clock())

    def clock(self) -> float:
        """Monotonic seconds without those that were lost."""
        return self._clock() - self.lost

    def _late(self, now: float) -> float:
        return max(0.0, now - self._due - TOLERANCE)

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        """As `asyncio.timeout`, by this clock: it is over after so many seconds in which an answer could be read."""
        loop, end = asyncio.get_running_loop(), self.clock() + seconds
        timer: asyncio.TimerHandle
        async with asyncio.timeout(None) as bound:

            def ring() -> None:
                nonlocal timer
                left = end - self.clock()
                if left > 0:
                    timer = loop.call_later(left, ring)
                else:
                    bound.reschedule(loop.time())

            timer = loop.call_later(seconds, ring)
            try:
                yield
            finally:
                timer.cancel()
