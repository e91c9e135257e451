"""Leases of durable graphs in a real PostgreSQL: one replica runs a graph, and what another had of it is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from pallas_gateway.own.execution.durable.journal import Graph, Lost, Seen, Step
from pallas_gateway.own.execution.durable.shared import LEASE, MOST_AT_ONCE, SharedJournal
from pallas_gateway.state.postgres import Postgres
from pallas_service.sqlite_file import CannotStore
from tests.gateway.state.stores import LIMIT, Server, postgres, postgres_url

GRAPH = Graph("1", "desk", "d", {"tasks": []}, {"headers": {}})
ONE = Step("a", "success", "one")
TWO = Step("b", "error", "two")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
async def store(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Postgres]:
    opened = Postgres(postgres_url(server), request.node.name, seconds=LIMIT)
    yield opened
    await opened.close()


@pytest.fixture
def two(store: Postgres, now: list[float]) -> tuple[SharedJournal, SharedJournal]:
    return SharedJournal(store, clock=lambda: now[0]), SharedJournal(store, clock=lambda: now[0])


async def run_of(journal: SharedJournal, graph: Graph = GRAPH) -> int:
    run = (await journal.begin(graph)).run
    assert run is not None
    return run


async def test_of_many_at_once_one_begins_it(store: Postgres) -> None:
    replicas = [SharedJournal(store) for _ in range(8)]
    begun = await asyncio.gather(*(replica.begin(GRAPH) for replica in replicas))
    assert sorted(entry.run or 0 for entry in begun) == [0] * 7 + [1]
    assert {entry.entry.state for entry in begun} == {"running"}


async def test_another_goes_on_once_the_lease_is_over_and_the_slow_one_writes_nothing(
    two: tuple[SharedJournal, SharedJournal], now: list[float]
) -> None:
    slow, other = two
    run = await run_of(slow)
    await slow.step("1", run, ONE)
    now[0] += LEASE - 1
    assert (await other.unfinished(), (await other.begin(GRAPH)).run) == ([], None)
    now[0] += 1
    assert await other.unfinished() == [GRAPH]
    assert await other.unfinished({"1"}) == []
    begun = await other.begin(GRAPH)
    assert (begun.run, begun.ended, begun.again, begun.entry.starts) == (2, {"a": "one"}, True, 2)
    for late in (slow.step("1", run, TWO), slow.wait("1", run, {}), slow.end("1", run, {"result": "late"})):
        with pytest.raises(Lost):
            await late
    assert await slow.renew({"1": run}) == {"1"}
    await other.step("1", 2, TWO)
    assert await slow.seen(["1"], ["1"]) == {"1": Seen(None, {"a": "success", "b": "error"})}
    assert await slow.seen(["1", "?"], []) == {"1": Seen(None, {})}
    await other.end("1", 2, {"result": 1})
    assert await slow.seen(["1"], ["1"]) == {"1": Seen({"result": 1}, {})}
    entry = await slow.find("1")
    assert entry is not None
    assert entry.answer == {"result": 1}


async def test_a_lease_that_is_renewed_is_kept(two: tuple[SharedJournal, SharedJournal], now: list[float]) -> None:
    one, other = two
    run = await run_of(one)
    for _ in range(3):
        now[0] += LEASE - 1
        assert await one.renew({"1": run}) == set()
        assert (await other.begin(GRAPH)).run is None
    now[0] += LEASE  # nobody was there to take it over: it is still the same run
    assert await one.renew({"1": run}) == set()
    await one.step("1", run, ONE)


async def test_a_gateway_knows_by_its_own_clock_when_another_may_have_a_graph(
    store: Postgres, now: list[float]
) -> None:
    mine = [0.0]
    one = SharedJournal(store, clock=lambda: now[0], monotonic=lambda: mine[0])
    assert not one.holds("1")
    run = await run_of(one)
    mine[0] += LEASE - 1
    assert one.holds("1")
    mine[0] += 1
    assert not one.holds("1")
    assert await one.renew({"1": run}) == set()
    assert one.holds("1")
    now[0] += LEASE
    assert await run_of(SharedJournal(store, clock=lambda: now[0])) == run + 1
    assert one.holds("1")  # of that it has not heard
    assert await one.renew({"1": run}) == {"1"}
    assert not one.holds("1")


async def test_one_graph_is_let_go_alone(two: tuple[SharedJournal, SharedJournal]) -> None:
    one, other = two
    await run_of(one)
    await run_of(one, replace(GRAPH, id="2"))
    await one.leave("2")
    assert [graph.id for graph in await other.unfinished()] == ["2"]
    assert (await other.begin(replace(GRAPH, id="2"))).entry.starts == 1


async def test_what_a_gateway_runs_no_more_is_anothers_at_once(two: tuple[SharedJournal, SharedJournal]) -> None:
    one, other = two
    first, second = await run_of(one), await run_of(one, replace(GRAPH, id="2"))
    assert await one.renew({"2": second}) == set()
    assert await other.unfinished() == [GRAPH]
    assert await run_of(one) == first + 1  # its own caller came first
    await one.leave()
    assert [graph.id for graph in await other.unfinished()] == ["1", "2"]
    begun = await other.begin(replace(GRAPH, id="2"))
    assert (begun.run, begun.entry.starts) == (2, 1)  # the one that left was not ended by it


async def test_one_that_waits_is_told_to_others_and_begun_by_any(two: tuple[SharedJournal, SharedJournal]) -> None:
    one, other = two
    await one.wait("1", await run_of(one), {"error": "confirm it"})
    assert await other.seen(["1"], []) == {"1": Seen({"error": "confirm it"}, {})}
    assert await other.unfinished() == []
    assert await run_of(other) == 2
    assert await one.seen(["1"], []) == {"1": Seen(None, {})}


async def test_a_replica_takes_over_some_at_a_time(two: tuple[SharedJournal, SharedJournal], now: list[float]) -> None:
    one, other = two
    for number in range(MOST_AT_ONCE + 1):
        await run_of(one, replace(GRAPH, id=f"{number:02}"))
    now[0] += LEASE
    assert [graph.id for graph in await other.unfinished()] == [f"{number:02}" for number in range(MOST_AT_ONCE)]


async def test_a_store_that_is_away_is_said_by_each_question(store: Postgres, server: Server) -> None:
    journal = SharedJournal(store)
    run = await run_of(journal)
    server.stop()
    try:
        for question in (
            journal.find("1"),
            journal.begin(GRAPH),
            journal.step("1", run, ONE),
            journal.renew({"1": run}),
            journal.seen(["1"], []),
            journal.leave(),
        ):
            with pytest.raises(CannotStore):
                await question
    finally:
        server.start()
    async with asyncio.timeout(LIMIT):
        while store.problem:
            with suppress(CannotStore):
                await journal.renew({"1": run})
