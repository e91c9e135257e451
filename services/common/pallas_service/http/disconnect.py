"""A caller that hangs up takes its question back, in both eras.

The SDK sees to it in the stateless era. In a session of the handshake era it lets the work go on, because a client
might come back for the answer (2025-11-25, Transports); no events are kept for that here, so nobody could ever read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from starlette.requests import Request

PATIENCE = 0.05
"""Seconds of work after which somebody listens for the end of the connection: to most answers a task that does would
add a tenth of what they cost."""


class HungUp(MCPError):
    """A caller that closed its connection; there is nobody to tell it to but the log."""

    def __init__(self) -> None:
        super().__init__(CONNECTION_CLOSED, "the caller hung up")


async def attended[T](request: Request | None, work: Awaitable[T]) -> T:
    """Return the result of `work`, which is cancelled when the connection of `request` is closed.

    Raises:
        HungUp: it was.
    """
    if request is None:
        return await work
    limit = asyncio.timeout(None)
    listening: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    later = loop.call_later(PATIENCE, lambda: listening.append(loop.create_task(_closed(request, limit))))
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise HungUp from None
    finally:
        later.cancel()
        for task in listening:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _closed(request: Request, limit: asyncio.Timeout) -> None:
    """Let `limit` expire once the connection is closed."""
    while (await request.receive())["type"] != "http.disconnect":
        pass  # the end of the body
    limit.reschedule(asyncio.get_running_loop().time())
