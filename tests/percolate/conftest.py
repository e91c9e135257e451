"""The memory of examples/04-percolate, no package of the kit's, in a file of SQLite and in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import pytest

from tests.example_folder import make_importable
from tests.gateway.state.stores import Server, postgres

make_importable("04-percolate", "percolate")

from percolate.memory.databases import open_store  # noqa: E402 - importable by the line above

DATABASES = ("sqlite", "postgresql")
EMPTY, TABLES = "empty", "tables"
"""Databases to copy: one with pgvector and nothing else, and one that a server has brought up to its version."""
NewDatabase = Callable[..., str]
"""The address of a new database of a kind: with nothing in it, or a copy of another one of PostgreSQL."""
_NUMBERS = itertools.count()


def address(server: Server, database: str, role: str = "percolate") -> str:
    return f"postgresql://{role}@127.0.0.1:{server.port}/{database}"


def as_superuser(server: Server, database: str, *statements: str) -> None:
    """Run statements as the user of a database's makers does, of README.md too."""

    async def run() -> None:
        connection: Any = await asyncpg.connect(address(server, database, "postgres"), timeout=120)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    _elsewhere(lambda: asyncio.run(run()))


def _elsewhere(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as thread:  # a test may be running a loop in this one
        thread.submit(work).result()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL with a role that serves, and databases to copy."""
    with postgres() as server:
        as_superuser(server, "postgres", "CREATE ROLE percolate LOGIN", f"CREATE DATABASE {EMPTY}")
        as_superuser(server, EMPTY, "CREATE EXTENSION vector")
        _copy(server, EMPTY, TABLES)
        _elsewhere(lambda: open_store(address(server, TABLES)).close())
        yield server


def _copy(server: Server, source: str, name: str) -> None:
    # half of what the other strategy costs, which writes each page to the log too
    as_superuser(server, "postgres", f"CREATE DATABASE {name} TEMPLATE {source} OWNER percolate STRATEGY FILE_COPY")


@pytest.fixture(scope="session")
def new_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    def make(kind: str, source: str = EMPTY) -> str:
        if kind == "sqlite":
            return str(tmp_path_factory.mktemp("memory") / "memory.db")
        server = request.getfixturevalue("postgresql")
        name = f"memory_{next(_NUMBERS)}"
        _copy(server, source, name)
        return address(server, name)

    return make


@pytest.fixture(params=DATABASES)
def store(new_database: NewDatabase, request: pytest.FixtureRequest) -> Iterator[Any]:
    store = open_store(new_database(request.param, TABLES))
    yield store
    store.close()
