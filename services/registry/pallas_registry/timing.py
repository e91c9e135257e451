"""Waiting, with the clock and the sleep that were handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

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
