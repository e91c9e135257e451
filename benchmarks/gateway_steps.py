"""Durable steps of the gateway: until the outcome of a task is on disk (SQLite WAL or PostgreSQL, each step synced).

A step is one transaction of the journal, with a result of 2 KiB, as a graph waits for it before it goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.method.report import Figure, at_most
from benchmarks.method.side_by_side import Effort, spread
from pallas_gateway.own.execution.durable import outcomes
from pallas_gateway.own.execution.durable.journal import Graph, Journal, SqliteJournal, Step
from pallas_gateway.own.execution.durable.shared import SharedJournal
from pallas_gateway.own.execution.scheduler import Outcome
from pallas_gateway.state.database import FILE, Database
from pallas_gateway.state.postgres import Postgres
from tests.gateway.state import stores

STEPS = 100
"""As many as a graph has tasks."""


def measure(effort: Effort) -> Iterator[Figure]:
    outcome = outcomes.written(Outcome("success", {"text": "x" * 2048}))
    with tempfile.TemporaryDirectory() as name:
        database = Database(Path(name) / FILE)
        try:
            rounds = [
                asyncio.run(_step(SqliteJournal(database), str(number), outcome)) for number in range(effort.rounds)
            ]
            yield Figure(
                "a durable step, SQLite",
                spread(rounds),
                at_most(10),
                "ms",
                detail=f"a plain fsync {_synced(name):.2f} ms",
            )
        finally:
            database.close()
    with stores.postgres(synced=True) as server:
        shared = [asyncio.run(_shared(stores.postgres_url(server), str(n), outcome)) for n in range(effort.rounds)]
    yield Figure("a durable step, PostgreSQL", spread(shared), unit="ms", detail="on this machine")


async def _shared(url: str, id_: str, outcome: str) -> float:
    store = Postgres(url, "bench")
    try:
        return await _step(SharedJournal(store), id_, outcome)
    finally:
        await store.close()


async def _step(journal: Journal, id_: str, outcome: str) -> float:
    """Return the milliseconds of a step of one graph."""
    run = (await journal.begin(Graph(id_, "bench", "", {}, {}))).run
    assert run is not None
    started = time.perf_counter()
    for number in range(STEPS):
        await journal.step(id_, run, Step(str(number), "success", outcome))
    took = time.perf_counter() - started
    await journal.end(id_, run, json.loads(outcome))
    return 1000 * took / STEPS


def _synced(folder: str) -> float:
    """Return the milliseconds in which this disk takes 2 KiB, so that a slow disk is told from a slow journal."""
    with (Path(folder) / "plain").open("wb") as file:
        started = time.perf_counter()
        for _ in range(STEPS):
            file.write(b"x" * 2048)
            file.flush()
            os.fsync(file.fileno())
        return 1000 * (time.perf_counter() - started) / STEPS
