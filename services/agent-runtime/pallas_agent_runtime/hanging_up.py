"""A caller that hangs up takes its question back, in both eras.

The SDK sees to it in the stateless era. In a session of the handshake era it lets the work go on, because a client
might come back for the answer (2025-11-25, Transports); no events are kept for that here, so nobody could ever read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.requests import Request


class HungUp(Exception):
    """Who asked has closed the connection; there is nobody to tell it to but the log."""


async def attended[T](request: Request | None, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the connection of `request` is closed.

    Raises:
        HungUp: it was.
    """
    if request is None:
        return await work
    working, listening = asyncio.create_task(work), asyncio.create_task(_closed(request))
    try:
        await asyncio.wait([working, listening], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HungUp("the caller hung up")
        return working.result()
    finally:
        for task in (working, listening):
            task.cancel()


async def _closed(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # the end of the body
