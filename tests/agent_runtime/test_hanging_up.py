"""Work for a caller who may hang up; over HTTP: faults/test_two_levels.py."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from pallas_agent_runtime.hanging_up import HungUp, attended


class Line:
    """The connection of a request whose body has been read, but for its end."""

    def __init__(self) -> None:
        self.closed, self.ended = asyncio.Event(), False
        self.request = Request({"type": "http", "headers": []}, self.receive)

    async def receive(self) -> Any:
        if not self.ended:
            self.ended = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.closed.wait()
        return {"type": "http.disconnect"}


class Work:
    def __init__(self) -> None:
        self.begun, self.let, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self) -> str:
        self.begun.set()
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "done"


async def fail() -> str:
    raise ValueError("no")


async def test_a_caller_who_stays_gets_what_comes_of_it() -> None:
    work = Work()
    work.let.set()
    assert await attended(Line().request, work()) == "done"
    assert await attended(None, work()) == "done"
    with pytest.raises(ValueError, match="no"):
        await attended(Line().request, fail())


async def test_one_who_hangs_up_ends_it() -> None:
    line, work = Line(), Work()
    waiting = asyncio.create_task(attended(line.request, work()))
    await work.begun.wait()
    line.closed.set()
    with pytest.raises(HungUp):
        await waiting
    await asyncio.wait_for(work.cancelled.wait(), 10)


async def test_one_who_cancels_ends_it() -> None:
    work = Work()
    waiting = asyncio.create_task(attended(Line().request, work()))
    await work.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(work.cancelled.wait(), 10)
