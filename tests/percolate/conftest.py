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

DATABASES = ("sqlite", "postgresql")
NewDatabase = Callable[[str], str]
"""The address of a database of a kind, with nothing in it."""
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

    with ThreadPoolExecutor(1) as thread:  # a test may be running a loop in this one
        thread.submit(lambda: asyncio.run(run())).result()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL with a role that serves, and a database `empty` to copy, which has pgvector."""
    with postgres() as server:
        as_superuser(server, "postgres", "CREATE ROLE percolate LOGIN", "CREATE DATABASE empty")
        as_superuser(server, "empty", "CREATE EXTENSION vector")
        yield server


@pytest.fixture(scope="session")
def new_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    def make(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path_factory.mktemp("memory") / "memory.db")
        server = request.getfixturevalue("postgresql")
        name = f"memory_{next(_NUMBERS)}"
        # half of what the other strategy costs, which writes each page to the log too
        as_superuser(server, "postgres", f"CREATE DATABASE {name} TEMPLATE empty OWNER percolate STRATEGY FILE_COPY")
        return address(server, name)

    return make


@pytest.fixture(params=DATABASES)
def store(new_database: NewDatabase, request: pytest.FixtureRequest) -> Iterator[Any]:
    from percolate.memory.databases import open_store  # noqa: PLC0415 - importable by the lines above

    store = open_store(new_database(request.param))
    yield store
    store.close()
