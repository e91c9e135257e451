"""Connections to PostgreSQL for code that runs in threads, and what is said when there are none."""

from __future__ import annotations

import asyncio
import struct
import sys
import threading
import time
from array import array
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from percolate.memory.migrations import migrate
from percolate.problems import Away, Full, Problem

AT_ONCE = 5
_SECONDS = 30
"""Of one statement, or of the wait for a connection."""
_NO_ADDRESS = "PERCOLATE_DATABASE is no address: postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_NO_ROOM = "does not fit: the disk of the memory's database is full"
_FILES = "md.c"
"""Where PostgreSQL makes its files longer: a quota, or a limit of the process, has no code of its own."""
_AGAIN = 0.5
"""Seconds after which a database that is away is tried again."""


class Connections:
    """A pool, and the event loop that it lives in, in a thread of its own."""

    def __init__(self, address: str, *, patience: float) -> None:
        """Connect and migrate.

        Raises:
            Problem: the address is none, the database is no place for tenants, or (`Away`) not there in time.
        """
        self._address = address
        self._where = _where(address)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="postgres")
        self._thread.start()
        self._pool: Any = None
        try:
            self._open(time.monotonic() + patience)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections, and the thread."""
        if self._pool is not None:
            self._loop.call_soon_threadsafe(self._pool.terminate)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        # what `terminate` has left to the loop
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def run[T](self, work: Awaitable[T]) -> T:
        """Return what asyncpg gives.

        Raises:
            Problem: nothing; `Away` where the database does not answer, `Full` where it has no room.
        """
        with self._told():
            return asyncio.run_coroutine_threadsafe(_awaited(work), self._loop).result()

    @contextmanager
    def begun(self) -> Iterator[Any]:
        """Yield a connection in a transaction, which ends with the block."""
        connection = self.run(self._pool.acquire(timeout=_SECONDS))
        try:
            with self._told():  # asyncpg looks at a connection before there is something to wait for
                transaction = connection.transaction()
                self.run(transaction.start())
            try:
                yield connection
            except BaseException:
                with suppress(Problem), self._told():  # where it is away nothing is stored
                    self.run(transaction.rollback())
                raise
            with self._told():
                self.run(transaction.commit())
        finally:
            with suppress(Problem):
                self.run(self._pool.release(connection))

    def _open(self, end: float) -> None:
        while self._pool is None:
            try:
                self._pool = self.run(self._opened())
            except Away as error:
                if time.monotonic() > end:
                    raise
                print(f"{error}: trying again", file=sys.stderr, flush=True)
                time.sleep(_AGAIN)

    async def _opened(self) -> Any:
        connection = await asyncpg.connect(self._address, timeout=_SECONDS, command_timeout=_SECONDS)
        try:
            await migrate(connection)
        finally:
            await connection.close()
        return await asyncpg.create_pool(
            self._address,
            min_size=0,
            max_size=AT_ONCE,
            timeout=_SECONDS,
            command_timeout=_SECONDS,
            statement_cache_size=0,  # poolers in front of it keep no prepared statements
            init=_know_vectors,
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what PostgreSQL says in our words: its own may quote a row."""
        try:
            yield
        except Problem:
            raise
        except (asyncpg.DiskFullError, asyncpg.PostgresIOError) as error:
            raise Full(f"{_NO_ROOM} ({type(error).__name__})") from None
        except asyncpg.ClientConfigurationError:
            raise Problem(_NO_ADDRESS) from None
        except (asyncpg.DataError, UnicodeError) as error:
            raise Problem(f"the memory's database cannot hold such a text ({type(error).__name__})") from None
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as error:
            raise Problem(f"PERCOLATE_DATABASE: {self._where} lets nobody in ({type(error).__name__})") from None
        except (
            asyncpg.PostgresConnectionError,
            asyncpg.IdleInTransactionSessionTimeoutError,
            asyncpg.OperatorInterventionError,
            asyncpg.InsufficientResourcesError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
            OSError,
            TimeoutError,
        ) as error:
            if self._pool is not None:  # of those that lie in the pool none is worth a try
                self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._pool.expire_connections()))
            raise Away(
                f"the memory's database {self._where} gives no answer ({type(error).__name__}): what it has is not "
                "lost, try again"
            ) from None
        except asyncpg.PostgresError as error:
            if getattr(error, "server_source_filename", "") == _FILES:
                raise Full(f"{_NO_ROOM} ({type(error).__name__})") from None
            raise Problem(f"the memory's database refuses ({type(error).__name__})") from None


async def _awaited[T](work: Awaitable[T]) -> T:
    return await work


def _where(address: str) -> str:
    """Return host and port of an address, without its password.

    Raises:
        Problem: it is no address.
    """
    try:
        parts = urlsplit(address)
        return f"{parts.hostname or 'localhost'}:{parts.port or 5432}"
    except ValueError:
        raise Problem(_NO_ADDRESS) from None


async def _know_vectors(connection: Any) -> None:
    """Let vectors be bytes of 32-bit numbers, as everywhere in the memory."""
    schema = await connection.fetchval(
        "SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    )
    await connection.set_type_codec("vector", schema=schema, encoder=_encode, decoder=_decode, format="binary")


def _encode(vector: bytes) -> bytes:
    numbers = _swapped(vector)
    return struct.pack(">HH", len(numbers) // 4, 0) + numbers


def _decode(data: bytes) -> bytes:
    return _swapped(bytes(data[4:]))


def _swapped(data: bytes) -> bytes:
    """Return 32-bit numbers in the order of bytes that the network has, or those in the order of this machine."""
    numbers = array("f", data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()
