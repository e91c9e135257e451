"""Waiting, with the clock and the sleep that were handed in, going on after a round that failed, brief values."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

import structlog

_log = structlog.get_logger()

Sleep = Callable[[float], Awaitable[None]]
FRESH = 1.0
"""Seconds for which a `Brief` value is handed to everybody."""


async def wait_for(event: asyncio.Event, seconds: float, sleep: Sleep) -> None:
    """Return when `event` is set or `seconds` have passed."""
    pause = asyncio.ensure_future(sleep(seconds))
    wake = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({pause, wake}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        pause.cancel()
        wake.cancel()


@contextlib.contextmanager
def surviving(loop: str) -> Iterator[None]:
    """Log what a round of `loop` raises, whatever that is: no input ends a running registry.

    Where every round fails, states grow old, and their age is what the alert PallasRegistryStale looks at.
    """
    try:
        yield
    except Exception:
        with contextlib.suppress(Exception):  # the log may be what failed: a full disk, or no memory for a long line
            _log.exception("a round failed, the next one follows", loop=loop)


class Brief[T]:
    """A value that many ask for at once, made at most once a second; a new `version` makes it anew at once."""

    def __init__(
        self, make: Callable[[], T], *, clock: Callable[[], float], version: Callable[[], object] = lambda: None
    ) -> None:
        """`clock` is monotonic seconds."""
        self._make = make
        self._clock = clock
        self._version = version
        self._made: tuple[object, float, T] | None = None

    def __call__(self) -> T:
        """Return the value; it is older than `FRESH` seconds in no case."""
        version = self._version()
        now = self._clock()
        if self._made is None or self._made[0] != version or now - self._made[1] >= FRESH:
            self._made = (version, now, self._make())
        return self._made[2]
