"""Deadlines that pass once the agent has been reached, and never before, however little time this machine has."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


class Deadlines:
    """`asyncio` for a module of the gateway, but for `timeout`: for `seconds`, and over once `reached` is set."""

    def __init__(self, reached: asyncio.Event, seconds: float) -> None:
        self._reached = reached
        self._seconds = seconds
        self._tasks: list[asyncio.Task[None]] = []

    def timeout(self, seconds: float) -> asyncio.Timeout:
        assert seconds == self._seconds, "another deadline than the test's"
        deadline = asyncio.timeout(None)
        self._tasks.append(asyncio.create_task(self._end(deadline)))
        return deadline

    async def _end(self, deadline: asyncio.Timeout) -> None:
        await self._reached.wait()
        self._reached.clear()
        with suppress(RuntimeError):  # what it was for is done
            deadline.reschedule(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)
