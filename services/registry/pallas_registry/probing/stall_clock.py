"""The lateness of the registry itself, so that a process without a processor does not call its agents silent.

Deadlines by the clock pass while a process is stopped or starved, and an answer that came meanwhile is read after them.
So what waits for others here is forgiven the time in which the process did not run. A loop that is merely busy runs: it
gets one more turn to read what has come, and no more, since deadlines bound how late a dead agent is noticed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from heapq import nlargest
from types import TracebackType

PERIOD = 0.25
"""Seconds between two beats."""
TOLERANCE = 0.05
"""Seconds that a beat may be late."""
STALLS = 2
"""Most stalls that one wait is forgiven: a probe has two answers to read, and a stall may hide each of them."""
TURN = 0.01
"""Seconds for the loop to read what has come while it did not turn."""
_KEPT = 256
"""Stalls that are remembered."""


class StallClock:
    """A clock that beats four times a second, or later; until `start` no time is lost.

    `cpu` is the seconds of processor that this process has had: time in which it had one is not lost.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, cpu: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._cpu = cpu
        self._lost = 0.0
        self._last = float("inf")
        self._used = 0.0
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def start(self) -> None:
        """Beat now, and from now on for as long as the running loop turns."""
        self._keep_beating(asyncio.get_running_loop())

    def _keep_beating(self, loop: asyncio.AbstractEventLoop) -> None:
        self.beat()
        loop.call_later(PERIOD, self._keep_beating, loop)

    def beat(self) -> None:
        """Note that the loop turns, and for how long it should have and did not."""
        now = self._clock()
        if late := self._late(now):
            self._lost += late
            self._stalls.append((now, late))
        self._last = now
        self._used = self._cpu()

    @property
    def lost(self) -> float:
        """Return the seconds since the start in which the event loop should have run and did not."""
        return self._lost + self._late(self._clock())

    def clock(self) -> float:
        """Return monotonic seconds without those that were lost."""
        return self._clock() - self.lost

    def forgiven(self, since: float) -> float:
        """Return the seconds that do not count of a wait since then: its longest stalls, at most `STALLS` of them."""
        now = self._clock()
        stalls = [(ended, late) for ended, late in self._stalls if ended > since]
        if late := self._late(now):
            stalls.append((now, late))
        return sum(nlargest(STALLS, (min(late, ended - since) for ended, late in stalls)))

    def _late(self, now: float) -> float:
        late = now - self._last - PERIOD - TOLERANCE
        if late <= 0:
            return 0.0
        return max(0.0, min(late, now - self._last - (self._cpu() - self._used) - TOLERANCE))

    def timeout(self, seconds: float) -> _Timeout:
        """Return an `asyncio.timeout` that forgives stalls and reads what has come before it ends."""
        return _Timeout(self.forgiven, self._clock, seconds)


class _Timeout:
    """A timeout that looks at the clock when its time has come, and waits for what is left."""

    __slots__ = ("_began", "_bound", "_clock", "_due", "_forgiven", "_loop", "_seconds", "_timer")

    def __init__(self, forgiven: Callable[[float], float], clock: Callable[[], float], seconds: float) -> None:
        self._forgiven = forgiven
        self._clock = clock
        self._seconds = seconds
        self._began = clock()
        self._bound = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._bound.__aenter__()
        self._wait(self._remaining())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._bound.__aexit__(kind, error, trace)

    def _remaining(self) -> float:
        return self._began + self._seconds + self._forgiven(self._began) - self._clock()

    def _wait(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds
        self._timer = self._loop.call_later(seconds, self._ring)

    def _ring(self) -> None:
        remaining = self._remaining()
        if remaining > 0:
            self._wait(remaining)
        elif self._loop.time() > self._due + TOLERANCE:
            self._timer = self._loop.call_later(TURN, self._end)
        else:
            self._end()

    def _end(self) -> None:
        self._bound.reschedule(self._loop.time())
