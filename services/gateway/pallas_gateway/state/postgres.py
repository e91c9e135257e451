"""PostgreSQL as the state of several gateways: one schema of the fleet, one transaction of one replica at a time each.

Nobody waits for it at the start: while it is away nothing can be stored, and once it is back all goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog

from pallas_service.sqlite_file import CannotStore

SECONDS = 5.0
"""Seconds that a transaction may take, with the wait for a connection."""
RETRY = 1.0
"""Seconds after which a store that is away is asked again."""
PING = 15.0
"""Seconds after which one is asked that is there."""
CONNECTIONS = 4
"""Connections of one gateway: what they do is rare and short."""
_MIGRATIONS = (
    """
    CREATE TABLE {schema}.confirmations (
        id text PRIMARY KEY, caller text NOT NULL, name text NOT NULL, tenant text NOT NULL, agent text NOT NULL,
        tool text NOT NULL, digest text NOT NULL, asked text NOT NULL, policy text NOT NULL,
        approvers text[] NOT NULL, expires double precision NOT NULL, state text NOT NULL,
        decided_by text NOT NULL DEFAULT ''
    );
    CREATE INDEX confirmations_of ON {schema}.confirmations (caller, digest);
    CREATE TABLE {schema}.audit (
        chain text, seq bigint, line text NOT NULL, stored timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (chain, seq)
    );
    """,
    """
    CREATE TABLE {schema}.audit_parts (
        chain text, first bigint, bytes bigint NOT NULL, written timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (chain, first)
    );
    WITH RECURSIVE chains AS (
        SELECT min(chain) AS chain FROM {schema}.audit
        UNION ALL
        SELECT (SELECT min(chain) FROM {schema}.audit AS next WHERE next.chain > chains.chain) FROM chains
        WHERE chain IS NOT NULL
    )
    INSERT INTO {schema}.audit_parts (chain, first, bytes, written)
    SELECT chain, first, size * (until + 1 - first), stored FROM chains
    CROSS JOIN LATERAL (
        SELECT min(seq) AS low, max(seq) AS high FROM {schema}.audit AS kept WHERE kept.chain = chains.chain
    ) AS ends
    CROSS JOIN LATERAL generate_series(low, high, 10000) AS first
    CROSS JOIN LATERAL (SELECT least(first + 9999, high) AS until) AS ending
    CROSS JOIN LATERAL (
        SELECT stored FROM {schema}.audit AS kept WHERE kept.chain = chains.chain AND seq <= until
        ORDER BY seq DESC LIMIT 1
    ) AS newest
    CROSS JOIN LATERAL (
        SELECT ceil(avg(octet_length(line)))::bigint AS size FROM (
            SELECT line FROM {schema}.audit AS kept WHERE kept.chain = chains.chain AND seq >= first
            ORDER BY seq LIMIT 20
        ) AS few
    ) AS sample;
    """,
    """
    CREATE TABLE {schema}.graphs (
        id text PRIMARY KEY, tenant text NOT NULL, digest text NOT NULL, asked text NOT NULL, state text NOT NULL,
        starts integer NOT NULL, begun double precision NOT NULL, ended double precision NOT NULL, answer text NOT NULL,
        holder text NOT NULL, run bigint NOT NULL, lease double precision NOT NULL
    );
    CREATE INDEX graphs_of ON {schema}.graphs (tenant, state);
    CREATE INDEX graphs_running ON {schema}.graphs (begun, id) WHERE state = 'running';
    CREATE TABLE {schema}.steps (
        graph text REFERENCES {schema}.graphs ON DELETE CASCADE, task text, status text NOT NULL, outcome text NOT NULL,
        PRIMARY KEY (graph, task)
    );
    """,
)
"""Statements that bring the schema from each format to the next.

Of audits that are there at the second, parts are guessed from some records of each: they may be too large to be read.
"""
Connection = Any
"""One of asyncpg, in a transaction; the library has no types."""
log = structlog.get_logger(__name__)


class Postgres:
    """The database at `url`, in which the fleet called `fleet` has a schema of its own."""

    def __init__(self, url: str, fleet: str, *, seconds: float = SECONDS, silence: float | None = None) -> None:
        """`silence` are the seconds after which a transaction of which nothing more is heard is over.

        They are twice those that it may take where nothing else is said.
        """
        self._url = url
        self._seconds = seconds
        self._silence = 2 * seconds if silence is None else silence
        self._pool: Any = None
        self._is_migrated = False
        self._is_closed = False
        self._opening = asyncio.Lock()
        self.problem = ""
        """Why the last transaction failed; empty where it did not."""
        self.schema = _schema(fleet)
        """Its name, which needs no quotes."""

    async def run[R](self, work: Callable[[Connection], Awaitable[R]]) -> R:
        """Return `await work(connection)`, which is one transaction: all of it is stored, or nothing.

        Raises:
            CannotStore: nothing is, or nobody knows: the connection broke while it was stored.
        """
        import asyncpg  # noqa: PLC0415 - for gateways with replicas

        working = False
        try:
            async with asyncio.timeout(self._seconds):
                pool = await self._opened()
                async with pool.acquire() as connection, _transaction(connection, self._silence):
                    working = True
                    result = await work(connection)
                    working = False
        except asyncpg.UndefinedTableError as error:
            self._is_migrated = False  # somebody has begun it anew
            raise self._cannot(error) from None
        except asyncpg.DataError as error:  # of this caller alone: a name with NUL, which PostgreSQL has not
            raise CannotStore(f"PostgreSQL: {type(error).__name__}") from None
        except Exception as error:  # asyncpg lets more out than its own errors: IndexError for a message cut short
            known = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, UnicodeError)
            if working and not isinstance(error, known):
                raise  # it is the work's own
            raise self._cannot(error) from None
        if self.problem:
            log.info("the store is back")
            self.problem = ""
        return result

    async def watch(self) -> None:
        """Ask for ever whether it is there, so that an end of its outage, and a beginning, is known without a call.

        Whatever a round raises is why it cannot be used: no answer of it ends the gateway.
        """
        while True:
            try:
                with suppress(CannotStore):
                    await self.run(_ping)
            except Exception as error:
                self._cannot(error)
            await asyncio.sleep(RETRY if self.problem else PING)

    async def close(self) -> None:
        """Close the connections, those too that are on their way; nothing can be stored any more."""
        self._is_closed = True
        if self._pool is not None:
            self._pool.terminate()

    async def _opened(self) -> Any:
        async with self._opening:
            if self._pool is None:
                import asyncpg  # noqa: PLC0415 - see above

                self._pool = await asyncpg.create_pool(
                    self._url,
                    connect=self._connected,
                    min_size=0,
                    max_size=CONNECTIONS,
                    timeout=self._seconds,
                    command_timeout=self._seconds,
                    statement_cache_size=0,  # poolers in front of it keep no prepared statements
                )
            if not self._is_migrated:
                async with self._pool.acquire() as connection, _transaction(connection, self._silence):
                    await _migrate(connection, self.schema)
                self._is_migrated = True
        return self._pool

    async def _connected(self, *args: Any, **options: Any) -> Connection:
        """Return a new connection for the pool, which takes none back once it is ended: it would stay open.

        Raises:
            asyncpg.InterfaceError: it has been closed meanwhile.
        """
        import asyncpg  # noqa: PLC0415 - see above

        connection = await asyncpg.connect(*args, **options)
        if self._is_closed:
            connection.terminate()
            raise asyncpg.InterfaceError("the store is closed")
        return connection

    def _cannot(self, error: BaseException) -> CannotStore:
        # the server's words may quote a row, and those of a connection the address
        words = type(error).__name__
        if not self.problem:
            log.error("the store cannot be used", reason=words)
        self.problem = f"the store cannot be used: {words}"
        return CannotStore(f"PostgreSQL: {words}")


@asynccontextmanager
async def _transaction(connection: Connection, silence: float) -> AsyncIterator[None]:
    """Run the block as one transaction, which PostgreSQL ends itself when it hears nothing of it for `silence` seconds.

    A machine that is lost says no end: what it had locked would be so for the two hours of TCP. `SET LOCAL`, since
    poolers refuse the setting for a connection.
    """
    await connection.execute(f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = {round(1000 * silence)}")
    try:
        yield
    except BaseException:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")


async def locked(connection: Connection, about: str) -> None:
    """Wait until no other transaction, of any replica, holds the lock `about`; it ends with the transaction."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", about)


async def now(connection: Connection, clock: Callable[[], float] | None = None) -> float:
    """Return the time in seconds, which is the database's where no `clock` stands for it."""
    text = "SELECT extract(epoch FROM clock_timestamp())::double precision"
    time: float = clock() if clock else await connection.fetchval(text)
    return time


async def _ping(connection: Connection) -> None:
    await connection.execute("SELECT 1")


async def _migrate(connection: Connection, schema: str) -> None:
    await locked(connection, f"{schema} format")  # several replicas start at once
    if await connection.fetchval("SELECT to_regnamespace($1) IS NULL", schema):
        await connection.execute(f"CREATE SCHEMA {schema}")
    if await connection.fetchval("SELECT to_regclass($1) IS NULL", f"{schema}.format"):
        await connection.execute(f"CREATE TABLE {schema}.format (version integer NOT NULL)")
        await connection.execute(f"INSERT INTO {schema}.format VALUES (0)")  # noqa: S608 - a name of ours
    version = await connection.fetchval(f"SELECT version FROM {schema}.format")  # noqa: S608
    # what a later version of the kit has added is no hindrance: an upgrade runs beside the one before
    for statements in _MIGRATIONS[version:]:
        await connection.execute(statements.format(schema=schema))
    if version < len(_MIGRATIONS):
        await connection.execute(f"UPDATE {schema}.format SET version = $1", len(_MIGRATIONS))  # noqa: S608


def _schema(fleet: str) -> str:
    """Return the name of a fleet's schema: readable, and another one for each name of a fleet."""
    words = re.sub(r"[^a-z0-9]+", "_", fleet.lower()).strip("_")[:40]
    return f"pallas_{words}_{hashlib.sha256(fleet.encode()).hexdigest()[:8]}"
