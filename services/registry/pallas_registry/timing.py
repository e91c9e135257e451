"""Waiting, with the clock and the sleep that were handed in, and going on after a round that failed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

import structlog

_log = structlog.get_logger()

Sleep = Callable[[float], Awaitable[None]]


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
        _log.exception("a round failed, the next one follows", loop=loop)
