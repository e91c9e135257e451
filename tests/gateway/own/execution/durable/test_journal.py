"""The rows of durable graphs: what is begun, kept, let wait and forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pallas_gateway.own.execution.durable import journal as module
from pallas_gateway.own.execution.durable.journal import Graph, SqliteJournal, TooMany, graph_id
from pallas_gateway.state.database import Database

GRAPH = Graph("1", "desk", "d", {"tasks": [{"input": {"secret": "s3cret"}}]}, {"headers": {}})


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "gateway.db")
    yield database
    database.close()


@pytest.fixture
def journal(database: Database, clock: Clock) -> SqliteJournal:
    return SqliteJournal(database, clock)


async def kept(database: Database) -> list[Any]:
    return await database.run(lambda connection: connection.execute("SELECT id FROM graphs ORDER BY begun").fetchall())


async def test_a_graph_is_begun_stepped_and_ended(journal: SqliteJournal, database: Database) -> None:
    assert await journal.find("1") is None
    entry, ended = await journal.begin(GRAPH)
    assert (entry.state, entry.starts, entry.answer, ended) == ("running", 1, None, {})
    await journal.step("1", "a", "one")
    entry, ended = await journal.begin(GRAPH)
    assert (entry.starts, ended) == (2, {"a": "one"})
    assert await journal.unfinished() == [GRAPH]
    await journal.end("1", {"result": 1})
    entry, ended = await journal.begin(GRAPH)
    assert (entry.state, entry.starts, entry.answer, ended) == ("ended", 2, {"result": 1}, {})
    assert await journal.unfinished() == []
    rows = await database.run(lambda connection: connection.execute("SELECT asked FROM graphs").fetchall())
    assert rows == [("",)]


async def test_one_that_waits_begins_anew_with_what_it_has(journal: SqliteJournal) -> None:
    await journal.begin(GRAPH)
    await journal.step("1", "a", "one")
    await journal.wait("1")
    assert await journal.unfinished() == []
    entry, ended = await journal.begin(GRAPH)
    assert (entry.state, entry.starts, ended) == ("running", 1, {"a": "one"})


async def test_another_body_begins_nothing(journal: SqliteJournal) -> None:
    await journal.begin(GRAPH)
    entry, _ = await journal.begin(replace(GRAPH, digest="e"))
    assert (entry.digest, entry.starts) == ("d", 1)


async def test_a_tenant_may_have_so_many_under_way(journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 1)
    await journal.begin(GRAPH)
    with pytest.raises(TooMany, match="tenant `desk` has 1 graphs"):
        await journal.begin(replace(GRAPH, id="2"))
    await journal.begin(replace(GRAPH, id="3", tenant="home"))
    await journal.end("1", {})
    await journal.begin(replace(GRAPH, id="2"))


@pytest.mark.parametrize(("bound", "value"), [("MOST_KEPT", 1), ("MOST_BYTES", 30), ("DAY", 3.5)])
async def test_the_oldest_of_a_tenant_are_forgotten_and_none_of_others(
    journal: SqliteJournal, database: Database, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(module, bound, value)
    for graph in (replace(GRAPH, id="0", tenant="home"), GRAPH, replace(GRAPH, id="2"), replace(GRAPH, id="3")):
        await journal.begin(graph)
    for id_ in ("0", "1"):
        await journal.step(id_, "a", "one")
        await journal.wait(id_)
    for id_ in ("2", "3"):
        await journal.end(id_, {"result": "0123456789"})
    assert ("0",) in await kept(database)
    assert {("1",), ("3",)} - set(await kept(database)) == {("1",)}
    steps = await database.run(lambda connection: connection.execute("SELECT graph FROM steps").fetchall())
    assert steps == [("0",)]


def test_the_id_of_a_graph_is_of_its_tenant_caller_and_task() -> None:
    ids = {graph_id(*parts) for parts in (("a", "b", "c"), ("a", "bc", ""), ("", "ab", "c"), ("a", "", "bc"))}
    assert len(ids) == 4
