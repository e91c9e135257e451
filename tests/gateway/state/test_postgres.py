"""The state of several gateways in a real PostgreSQL: away, back, and one format for replicas that start at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import pytest

from pallas_gateway.state import postgres as postgres_module
from pallas_gateway.state.postgres import _MIGRATIONS, Connection, Postgres
from pallas_service.http.shutdown import background
from pallas_service.sqlite_file import CannotStore
from tests.gateway.state.stores import Server, postgres, postgres_url

LONG = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as running:
        yield running


@pytest.fixture
async def store(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Postgres]:
    opened = Postgres(postgres_url(server), request.node.name, seconds=LONG)
    yield opened
    await opened.close()


async def there(store: Postgres) -> None:
    """Return once the store can be used; how long that takes is the server's."""
    async with asyncio.timeout(LONG):
        while True:
            with suppress(CannotStore):
                await store.run(one)
                return
            await asyncio.sleep(0.02)


async def one(connection: Connection) -> int:
    number: int = await connection.fetchval("SELECT 1")
    return number


async def test_replicas_that_start_at_once_make_one_schema(server: Server) -> None:
    replicas = [Postgres(postgres_url(server), "at once", seconds=LONG) for _ in range(4)]
    assert await asyncio.gather(*(replica.run(one) for replica in replicas)) == [1] * 4
    version = await replicas[0].run(lambda c: c.fetch(f"SELECT version FROM {replicas[0].schema}.format"))
    assert [row["version"] for row in version] == [len(_MIGRATIONS)]
    for replica in replicas:
        await replica.close()


async def test_a_transaction_that_fails_stores_nothing(store: Postgres) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute(f"INSERT INTO {store.schema}.audit VALUES ('a', 1, 'line')")
        raise KeyError("no")

    with pytest.raises(KeyError):
        await store.run(work)
    assert await store.run(lambda c: c.fetchval(f"SELECT count(*) FROM {store.schema}.audit")) == 0


async def test_a_transaction_may_be_silent_for_twice_as_long_as_it_may_take(server: Server) -> None:
    opened = Postgres(postgres_url(server), "silent", seconds=LONG)
    silence = "SELECT current_setting('idle_in_transaction_session_timeout')"
    assert await opened.run(lambda c: c.fetchval(silence)) == "4min"
    await opened.close()


async def test_a_store_that_is_away_is_said_and_is_used_again_once_it_is_back(store: Postgres, server: Server) -> None:
    assert await store.run(one) == 1
    server.stop()
    try:
        with pytest.raises(CannotStore):
            await store.run(one)
        assert store.problem.startswith("the store cannot be used: ")
        assert "127.0.0.1" not in store.problem
    finally:
        server.start()
    await there(store)
    assert store.problem == ""


@pytest.mark.parametrize("name", ["\0", "\ud800"])
async def test_a_name_that_cannot_be_stored_is_no_trouble_of_the_store(store: Postgres, name: str) -> None:
    with pytest.raises(CannotStore):
        await store.run(lambda c: c.execute(f"INSERT INTO {store.schema}.audit VALUES ($1, 1, 'line')", name))
    assert store.problem == ""
    assert await store.run(one) == 1


class Slow:
    """A way to `server` on which nothing comes back while `open` is not set.

    `asked` is set by what goes there, `lost` once a client has hung up.
    """

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self.asked = asyncio.Event()
        self.open = asyncio.Event()
        self.lost = asyncio.Event()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)

        async def answer() -> None:
            while data := await there.read(1 << 16):
                await self.open.wait()
                writer.write(data)

        answering = asyncio.create_task(answer())
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                self.asked.set()
                back.write(data)
        self.lost.set()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        for end in (back, writer):
            end.close()

    @asynccontextmanager
    async def way(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self.relay, "127.0.0.1", 0) as way:
            yield f"postgresql://postgres@127.0.0.1:{way.sockets[0].getsockname()[1]}/postgres"


async def test_a_connection_that_is_there_after_the_end_is_closed(server: Server) -> None:
    """The pool forgets one that is on its way when it is ended, and would take it back no more."""
    slow = Slow(server)
    async with asyncio.timeout(LONG), slow.way() as url:
        store = Postgres(url, "ended", seconds=LONG)
        asking = asyncio.create_task(store.run(one))
        await slow.asked.wait()
        await store.close()
        slow.open.set()
        with pytest.raises(CannotStore):
            await asking
        await slow.lost.wait()


async def test_nothing_is_opened_after_the_end(server: Server) -> None:
    store = Postgres(postgres_url(server), "ended")
    await store.close()
    with pytest.raises(CannotStore):
        await store.run(one)


async def test_it_is_followed_without_a_call(store: Postgres, server: Server) -> None:
    async with background(store.watch()):
        server.stop()
        try:
            with pytest.raises(CannotStore):
                await store.run(one)
            assert store.problem
        finally:
            server.start()
        async with asyncio.timeout(LONG):
            while store.problem:
                await asyncio.sleep(0.02)


async def test_a_host_that_nobody_can_look_up_is_a_store_that_is_away() -> None:
    nowhere = Postgres(f"postgresql://{'a' * 70}.example/doors", "doors", seconds=LONG)
    with pytest.raises(CannotStore):
        await nowhere.run(one)
    assert nowhere.problem.startswith("the store cannot be used: Unicode")
    await nowhere.close()


async def test_a_database_that_was_begun_anew_is_prepared_again(store: Postgres) -> None:
    await store.run(one)
    await store.run(lambda c: c.execute(f"DROP SCHEMA {store.schema} CASCADE"))
    count = f"SELECT count(*) FROM {store.schema}.confirmations"
    with pytest.raises(CannotStore):
        await store.run(lambda c: c.fetchval(count))
    assert await store.run(lambda c: c.fetchval(count)) == 0


async def test_an_audit_of_the_first_format_has_parts_afterwards(server: Server) -> None:
    """Those of 10,000 records each, counted by what the first of them have."""
    store, newer = [Postgres(postgres_url(server), "older", seconds=LONG) for _ in range(2)]
    schema = store.schema
    await store.run(one)

    async def old(connection: Connection) -> None:
        for table in ("steps", "graphs", "audit_parts"):
            await connection.execute(f"DROP TABLE {schema}.{table}")
        await connection.execute(f"UPDATE {schema}.format SET version = 1")
        for chain, low, high in (("a", 1, 10_001), ("b", 21, 40)):
            await connection.execute(
                f"INSERT INTO {schema}.audit SELECT $1, seq, repeat('x', 100), to_timestamp(seq)"
                " FROM generate_series($2::bigint, $3) AS seq",
                *(chain, low, high),
            )

    await store.run(old)
    text = f"SELECT chain, first, bytes, extract(epoch FROM written)::int FROM {schema}.audit_parts ORDER BY 1, 2"
    rows = await newer.run(lambda c: c.fetch(text))
    for opened in (store, newer):
        await opened.close()
    assert [tuple(row) for row in rows] == [
        ("a", 1, 1_000_000, 10_000),
        ("a", 10_001, 100, 10_001),
        ("b", 21, 2_000, 40),
    ]


def test_each_fleet_has_a_schema_of_its_own() -> None:
    names = {Postgres("postgresql://h/d", name).schema for name in ("doors", "Doors", "döörs", "a" * 300)}
    assert len(names) == 4
    assert all(name.replace("_", "").isalnum() and len(name) <= 63 for name in names)


CUT_SHORT = {"while one logs in": b"R\0\0\0\4", "afterwards": b"R\0\0\0\x08\0\0\0\0Z\0\0\0\4"}


@pytest.mark.parametrize("answer", CUT_SHORT.values(), ids=CUT_SHORT)
async def test_an_answer_that_is_none_of_postgresql_ends_nothing(answer: bytes) -> None:
    """What asyncpg raises for it is none of its own errors."""

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while asked := await reader.read(1 << 16):
                writer.write(b"N" if len(asked) == 8 else answer)  # eight bytes ask for TLS
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1") as there:
        url = f"postgresql://postgres:secret@127.0.0.1:{there.sockets[0].getsockname()[1]}/postgres"
        store = Postgres(url, "nonsense", seconds=1.0)
        async with asyncio.timeout(LONG), background(store.watch()):
            while not store.problem:
                await asyncio.sleep(0.02)
            with pytest.raises(CannotStore):
                await store.run(one)
        await store.close()


async def test_whatever_a_look_at_the_store_raises_it_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Postgres("postgresql://127.0.0.1/doors", "doors")
    looks = 0
    again = asyncio.Event()

    async def run(_work: object) -> None:
        nonlocal looks
        looks += 1
        if looks > 1:
            again.set()
        raise ZeroDivisionError

    monkeypatch.setattr(store, "run", run)
    monkeypatch.setattr(postgres_module, "RETRY", 0.0)
    async with asyncio.timeout(LONG), background(store.watch()):
        await again.wait()
    assert store.problem == "the store cannot be used: ZeroDivisionError"
