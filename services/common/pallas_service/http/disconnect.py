"""A caller that hangs up takes its question back, in both eras.

The SDK sees to it in the stateless era. In a session of the handshake era it lets the work go on, because a client
might come back for the answer (2025-11-25, Transports); no events are kept for that here, so nobody could ever read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from starlette.types import Receive

PATIENCE = 0.05
"""Seconds of work after which somebody listens for the end of the connection.

Most answers are quicker, and a task that listens is a tenth of what a call takes.
"""


class HungUp(MCPError):
    """A caller that closed its connection; there is nobody to tell it to but the log."""

    def __init__(self) -> None:
        super().__init__(CONNECTION_CLOSED, "the caller hung up")


class Receiving(Protocol):
    """A request of ASGI as far as its end can be seen: starlette's, or what serves one without making that."""

    @property
    def receive(self) -> Receive:
        """Return ASGI's `receive`, from which nothing more is wanted than the end of the connection."""


class Overdue(Exception):
    """Work that was ended because it took too long."""


async def attended[T](request: Receiving | None, work: Awaitable[T], seconds: float | None = None) -> T:
    """Return the result of `work`, which is cancelled when the connection of `request` is closed, or after `seconds`.

    Raises:
        HungUp: it was closed.
        Overdue: it took longer.
    """
    limit = asyncio.timeout(None)
    closed: list[bool] = []
    listening: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds

    def attend() -> None:
        # nor is there a timer for the deadline of work that is over by now
        limit.reschedule(end)
        if request is not None:
            listening.append(loop.create_task(_closed(request, limit, closed)))

    later = loop.call_later(PATIENCE if seconds is None else min(PATIENCE, seconds), attend)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise (HungUp() if closed else Overdue()) from None
    finally:
        later.cancel()
        for task in listening:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _closed(request: Receiving, limit: asyncio.Timeout, closed: list[bool]) -> None:
    """Let `limit` expire once the connection is closed, which is noted in `closed`."""
    while (await request.receive())["type"] != "http.disconnect":
        pass  # the end of the body
    closed.append(True)
    limit.reschedule(asyncio.get_running_loop().time())
