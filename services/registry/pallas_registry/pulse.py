"""How late the registry itself is, so that a process without a processor does not call its agents silent.

Deadlines by the clock pass while a process is stopped or starved, and an answer that came meanwhile is read after them.
So what waits for others here counts only the time in which the event loop ran.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType

PERIOD = 0.25
"""Seconds between two beats."""
TOLERANCE = 0.05
"""Seconds that a beat may be late: a busy loop is not a stopped one."""


class Pulse:
    """A timer that rings four times a second, or later; until `start` no time is lost."""

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

    def timeout(self, seconds: float) -> _Timeout:
        """As `asyncio.timeout`, by this clock: it is over after so many seconds in which an answer could be read."""
        return _Timeout(self.clock, seconds)


class _Timeout:
    """A timeout that looks at the clock when its time has come, and waits for what is left."""

    __slots__ = ("_bound", "_clock", "_end", "_loop", "_timer")

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock, self._end, self._bound = clock, clock() + seconds, asyncio.timeout(None)

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._bound.__aenter__()
        self._timer = self._loop.call_later(self._end - self._clock(), self._ring)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._bound.__aexit__(kind, error, trace)

    def _ring(self) -> None:
        left = self._end - self._clock()
        if left > 0:
            self._timer = self._loop.call_later(left, self._ring)
        else:
            self._bound.reschedule(self._loop.time())
