"""A recheck asks every replica once, one agent at a time, and not too often."""

from __future__ import annotations

import asyncio

import pytest

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint
from pallas_registry.probing.recheck import CONCURRENCY, Busy, Recheck

ENDPOINTS = [Endpoint("http://harper:8080/mcp", f"10.0.0.{number}") for number in range(40)]


class Agents:
    """Answers when the test lets it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked: list[Endpoint] = []
        self.told: list[tuple[str, Endpoint, Result]] = []

    async def check(self, endpoint: Endpoint, before: Result | None) -> Result:
        assert before == Result("error", Reason("SelfReported", "before"))
        self.asked.append(endpoint)
        await self.may_answer.wait()
        return Result("ok")

    def report(self, *told) -> None:
        self.told.append(told)


@pytest.fixture
def agents() -> Agents:
    return Agents()


@pytest.fixture
def recheck(agents: Agents, time) -> Recheck:
    return Recheck(
        agents.check,
        agents.report,
        endpoints={"harper": ENDPOINTS, "gone": []}.__getitem__,
        before=lambda _agent, _endpoint: Result("error", Reason("SelfReported", "before")),
        clock=time.clock,
    )


async def test_every_replica_is_asked_and_reported_but_not_all_at_once(recheck, agents: Agents) -> None:
    task = asyncio.create_task(recheck("harper"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(agents.asked) == CONCURRENCY
    agents.may_answer.set()
    await task
    assert sorted(agents.told) == sorted(("harper", each, Result("ok")) for each in ENDPOINTS)


async def test_one_at_a_time(recheck, agents: Agents, time) -> None:
    task = asyncio.create_task(recheck("harper"))
    await time.advance(10)
    with pytest.raises(Busy) as busy:
        async with asyncio.timeout(60):
            await recheck("harper")
    assert busy.value.seconds == 1
    agents.may_answer.set()
    await task
    await recheck("harper")


async def test_not_too_often(recheck, agents: Agents, time) -> None:
    agents.may_answer.set()
    await recheck("harper")
    with pytest.raises(Busy):
        await recheck("harper")
    await time.advance(1)
    await recheck("gone")


async def test_a_caller_that_leaves_frees_the_way(recheck, agents: Agents, time) -> None:
    task = asyncio.create_task(recheck("harper"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await time.advance(1)
    agents.may_answer.set()
    await recheck("harper")


async def test_nobody_is_a_key_error_and_no_turn_is_used(recheck, agents: Agents) -> None:
    agents.may_answer.set()
    with pytest.raises(KeyError):
        await recheck("nobody")
    await recheck("harper")
