"""Work for a caller who may hang up; over HTTP: faults/test_two_levels.py."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from starlette.requests import Request

from pallas_service.http.disconnect import HungUp, Overdue, attended


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


async def test_nobody_listens_for_the_end_of_a_connection_while_work_is_short() -> None:
    async def receive() -> Any:
        raise AssertionError("asked")

    work = Work()
    work.let.set()
    for _ in range(100):
        assert await attended(Request({"type": "http", "headers": []}, receive), work()) == "done"
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("request_", [None, Line().request])
async def test_work_that_takes_too_long_is_ended(request_: Request | None) -> None:
    work = Work()
    with pytest.raises(Overdue):
        await attended(request_, work(), 0.2)
    assert work.cancelled.is_set()

    async def own() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await attended(request_, own(), 60)


async def test_one_who_hangs_up_ends_it() -> None:
    line, work = Line(), Work()
    waiting = asyncio.create_task(attended(line.request, work()))
    await work.begun.wait()
    line.closed.set()
    with pytest.raises(HungUp):
        await waiting
    assert work.cancelled.is_set()


async def test_one_who_cancels_ends_it() -> None:
    work = Work()
    waiting = asyncio.create_task(attended(Line().request, work()))
    await work.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert work.cancelled.is_set()


async def test_what_goes_wrong_is_heard_and_no_task_is_left() -> None:
    """Of the work while it is cancelled, and of the connection, after which nobody can say that it was closed."""
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))

    async def stubborn() -> str:
        try:
            return await work()
        except asyncio.CancelledError:
            raise ValueError("no") from None

    async def broken() -> Any:
        raise OSError("broken")

    line, work = Line(), Work()
    waiting = asyncio.create_task(attended(line.request, stubborn()))
    await work.begun.wait()
    line.closed.set()
    with pytest.raises(ValueError, match="no"):
        await waiting
    work.begun.clear()
    waiting = asyncio.create_task(attended(Request({"type": "http", "headers": []}, broken), work()))
    await work.begun.wait()
    work.let.set()
    assert await waiting == "done"
    assert asyncio.all_tasks() == {asyncio.current_task()}
    del waiting
    gc.collect()
    assert unheard == []
