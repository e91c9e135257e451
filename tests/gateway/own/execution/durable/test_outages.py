"""What replicas do around an outage of what they share, and what a run that was lost may still say."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import pytest
from mcp.shared.exceptions import MCPError

from pallas_gateway.own.execution.durable import graphs
from pallas_gateway.own.execution.durable.graphs import DurableGraphs
from pallas_gateway.own.execution.durable.journal import Graph, Pace, Seen
from pallas_gateway.own.execution.durable.live import Live
from pallas_gateway.own.execution.durable.replicas import Replicas
from pallas_gateway.own.failures import Failed
from pallas_service.sqlite_file import CannotStore
from tests.gateway.state.stores import LIMIT

GRAPH = Graph("1", "desk", "d", {"tasks": [], "meta": {"task_id": "dag"}}, {"headers": {}})


class Unsteady:
    """What is shared, and is away for a while; `events` are what it was asked, and the pauses."""

    pace = Pace(renew=10, follow=0.5, resume=2)

    def __init__(self) -> None:
        self.is_away = True
        self.events: list[str | float] = []

    def ask(self, what: str) -> None:
        self.events.append(what)
        if self.is_away:
            raise CannotStore("away")

    def holds(self, id_: str) -> bool:
        return True

    async def renew(self, runs: Mapping[str, int]) -> set[str]:
        self.ask("renew")
        return set()

    async def seen(self, ids: Collection[str], watched: Collection[str]) -> dict[str, Seen]:
        raise AssertionError

    async def leave(self, id_: str | None = None) -> None:
        raise AssertionError

    async def resume(self) -> None:
        self.ask("resume")

    async def sleep(self, seconds: float) -> None:
        self.events.append(seconds)

    def told(self) -> list[str | float]:
        """Return the events since they were asked for last."""
        events, self.events = self.events, []
        return events


async def test_after_an_outage_all_may_renew_before_anybody_takes_over() -> None:
    shared = Unsteady()
    replicas = Replicas(shared, {}, asyncio.Lock(), sleep=shared.sleep)
    for expected in (["resume"], ["renew"], ["renew"]):
        with pytest.raises(CannotStore):
            await replicas.resume(shared.resume)
        assert shared.told() == expected
    shared.is_away = False
    for expected in (["renew", 10, "resume"], ["resume"]):
        await replicas.resume(shared.resume)
        assert shared.told() == expected


async def test_a_lease_that_could_not_be_renewed_is_tried_again_soon() -> None:
    shared = Unsteady()
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        shared.events.append(seconds)
        if seconds == shared.pace.renew:
            enough.set()
            await asyncio.Event().wait()
        shared.is_away = shared.events.count("renew") < 2

    renewing, *others = Replicas(shared, {}, asyncio.Lock(), sleep=sleep).jobs(shared.resume)
    for other in others:
        other.close()
    task = asyncio.create_task(renewing)
    async with asyncio.timeout(LIMIT):
        await enough.wait()
    task.cancel()
    assert shared.told() == ["renew", 0.5, "renew", 0.5, "renew", 10]


@pytest.mark.parametrize("late", [Failed("not_stored", "away"), RuntimeError("no")])
async def test_a_run_that_was_lost_tells_nothing_to_who_waits_for_the_next(
    late: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(GRAPH)
    live.run = 1

    async def answered(*about: object) -> None:
        live.run = 2  # meanwhile
        raise late

    monkeypatch.setattr(DurableGraphs, "_answered", answered)
    durable = DurableGraphs(None, None)  # type: ignore[arg-type]
    await durable._run(GRAPH, live, graphs._Start(1, {}, 0.0))
    assert not live.answer.done()
    live.fail(Failed("failed", "its own"))
    with pytest.raises(MCPError, match="its own"):
        await live.wait(None)
