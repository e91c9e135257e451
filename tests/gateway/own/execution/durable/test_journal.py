"""The rows of durable graphs, in a file and in PostgreSQL: what is begun, kept, let wait and forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pallas_gateway.own.execution.durable import journal as module
from pallas_gateway.own.execution.durable.journal import Graph, Journal, SqliteJournal, Step, TooMany, graph_id
from pallas_gateway.own.execution.durable.shared import SharedJournal
from pallas_gateway.state.database import Database
from pallas_gateway.state.postgres import Postgres
from tests.gateway.state.stores import LIMIT, Server, postgres, postgres_url

GRAPH = Graph("1", "desk", "d", {"tasks": [{"input": {"secret": "s3cret"}}]}, {"headers": {}})
ONE = Step("a", "success", "one")


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        self.now += 1
        return self.now


@dataclass
class Kept:
    """A journal, and the rows of a query in its store."""

    journal: Journal
    rows: Callable[[str], Awaitable[list[Any]]]

    async def begun(self, graph: Graph) -> int:
        run = (await self.journal.begin(graph)).run
        assert run is not None
        return run


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@pytest.fixture(params=["one file", "PostgreSQL"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    if request.param == "one file":
        database = Database(tmp_path / "gateway.db")

        async def rows(query: str) -> list[Any]:
            return await database.run(lambda connection: connection.execute(query).fetchall())

        yield Kept(SqliteJournal(database, Clock()), rows)
        database.close()
    else:
        store = Postgres(postgres_url(request.getfixturevalue("server")), request.node.name, seconds=LIMIT)

        async def shared_rows(query: str) -> list[Any]:
            text = query.replace("FROM ", f"FROM {store.schema}.")
            return [tuple(row) for row in await store.run(lambda connection: connection.fetch(text))]

        yield Kept(SharedJournal(store, clock=Clock()), shared_rows)
        await store.close()


async def test_a_graph_is_begun_stepped_and_ended(kept: Kept) -> None:
    journal = kept.journal
    assert await journal.find("1") is None
    begun = await journal.begin(GRAPH)
    assert begun.run is not None
    assert (begun.entry.state, begun.entry.starts, begun.entry.answer) == ("running", 1, None)
    assert (begun.ended, begun.again) == ({}, False)
    await journal.step("1", begun.run, ONE)
    again = await journal.begin(GRAPH)
    assert again.run is not None
    assert (again.entry.starts, again.ended, again.again) == (2, {"a": "one"}, True)
    await journal.end("1", again.run, {"result": 1})
    ended = await journal.begin(GRAPH)
    assert (ended.entry.state, ended.entry.starts, ended.entry.answer) == ("ended", 2, {"result": 1})
    assert (ended.run, ended.ended) == (None, {})
    assert await journal.unfinished() == []
    assert await kept.rows("SELECT asked FROM graphs") == [("",)]
    assert await kept.rows("SELECT task FROM steps") == []


async def test_one_that_waits_begins_anew_with_what_it_has(kept: Kept) -> None:
    run = await kept.begun(GRAPH)
    await kept.journal.step("1", run, ONE)
    await kept.journal.wait("1", run, {"error": {}})
    assert await kept.journal.unfinished() == []
    begun = await kept.journal.begin(GRAPH)
    assert (begun.entry.state, begun.entry.starts, begun.entry.answer) == ("running", 1, None)
    assert (begun.ended, begun.again) == ({"a": "one"}, False)


async def test_another_body_begins_nothing(kept: Kept) -> None:
    await kept.begun(GRAPH)
    begun = await kept.journal.begin(replace(GRAPH, digest="e"))
    assert (begun.entry.digest, begun.entry.starts, begun.run) == ("d", 1, None)


async def test_a_tenant_may_have_so_many_under_way(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 1)
    run = await kept.begun(GRAPH)
    with pytest.raises(TooMany, match="tenant `desk` has 1 graphs"):
        await kept.journal.begin(replace(GRAPH, id="2"))
    await kept.begun(replace(GRAPH, id="3", tenant="home"))
    await kept.journal.end("1", run, {})
    await kept.begun(replace(GRAPH, id="2"))


@pytest.mark.parametrize(("bound", "value"), [("MOST_KEPT", 1), ("MOST_BYTES", 30), ("DAY", 2.0)])
async def test_the_oldest_of_a_tenant_are_forgotten_and_none_of_others(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(module, bound, value)
    graphs = (replace(GRAPH, id="0", tenant="home"), GRAPH, replace(GRAPH, id="2"), replace(GRAPH, id="3"))
    runs = {graph.id: await kept.begun(graph) for graph in graphs}
    for id_ in ("0", "1"):
        await kept.journal.step(id_, runs[id_], ONE)
        await kept.journal.wait(id_, runs[id_], {"error": "of 30 characters and a few more"})
    for id_ in ("2", "3"):
        await kept.journal.end(id_, runs[id_], {"result": "0123456789"})
    ids = {id_ for (id_,) in await kept.rows("SELECT id FROM graphs")}
    assert (ids & {"0", "1", "3"}) == {"0", "3"}
    assert await kept.rows("SELECT graph FROM steps") == [("0",)]


async def test_those_that_were_under_way_come_in_their_order(tmp_path: Path) -> None:
    database = Database(tmp_path / "gateway.db")
    journal = SqliteJournal(database, Clock())
    graphs = [replace(GRAPH, id=id_) for id_ in ("2", "1", "3")]
    for graph in graphs:
        await journal.begin(graph)
    assert await journal.unfinished() == graphs
    assert await journal.unfinished({"1"}) == [graphs[0], graphs[2]]
    database.close()


def test_the_id_of_a_graph_is_of_its_tenant_caller_and_task() -> None:
    ids = {graph_id(*parts) for parts in (("a", "b", "c"), ("a", "bc", ""), ("", "ab", "c"), ("a", "", "bc"))}
    assert len(ids) == 4
