"""One SQLite file (WAL) of the gateway: opened once, brought up to this version's tables, checked to be ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from pallas_service import sqlite_file
from pallas_service.sqlite_file import CannotStore, SqliteThread

FILE = "gateway.db"
"""Its name in the folder of the state."""
BUSY = 5.0
"""Seconds to wait for another process that looks into the file."""
OLDEST = (3, 37)
"""Version of SQLite that has strict tables."""
_APPLICATION = 0x70_61_67_77
"""`PRAGMA application_id` ("pagw"): whose file it is."""
_MIGRATIONS = (
    """
    CREATE TABLE confirmations (
        id TEXT PRIMARY KEY, caller TEXT NOT NULL, name TEXT NOT NULL, tenant TEXT NOT NULL, agent TEXT NOT NULL,
        tool TEXT NOT NULL, digest TEXT NOT NULL, arguments TEXT NOT NULL, policy TEXT NOT NULL,
        approvers TEXT NOT NULL, expires REAL NOT NULL, state TEXT NOT NULL, decided_by TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX confirmations_of ON confirmations (caller, digest);
    """,
    # what waits was asked for by arguments alone, and is asked for again
    "DELETE FROM confirmations; ALTER TABLE confirmations RENAME COLUMN arguments TO asked;",
    """
    CREATE TABLE graphs (
        id TEXT PRIMARY KEY, tenant TEXT NOT NULL, digest TEXT NOT NULL, asked TEXT NOT NULL, state TEXT NOT NULL,
        starts INTEGER NOT NULL, begun REAL NOT NULL, ended REAL NOT NULL, answer TEXT NOT NULL
    ) STRICT;
    CREATE INDEX graphs_of ON graphs (tenant, state);
    CREATE TABLE steps (
        graph TEXT NOT NULL, task TEXT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (graph, task)
    ) STRICT;
    """,
)
"""Statements that bring the file from each version (`user_version`) to the next."""


class Database:
    """The file, whose transactions run one after the other in a thread of their own."""

    def __init__(self, path: Path) -> None:
        """Open the file at `path`, which is made when it is not there.

        Raises:
            CannotStore: it cannot be used.
        """
        if sqlite3.sqlite_version_info < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise CannotStore(f"{path}: needs SQLite {needed} or newer, and this Python has {sqlite3.sqlite_version}")
        self._path = path
        self.problem = ""
        """Why the last transaction failed; empty where it did not."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = sqlite_file.connect(path, timeout=BUSY)
        except (OSError, sqlite3.Error) as error:
            raise sqlite_file.cannot_store(path, error) from None
        try:
            _prepare(connection)
        except sqlite3.Error as error:
            connection.close()
            raise sqlite_file.cannot_store(path, error) from None
        except CannotStore as error:
            connection.close()
            raise CannotStore(f"{path}: {error}") from None
        self._thread = SqliteThread(connection, "state")

    async def run[R](self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Return `work(connection)`, which is one transaction: all of it is stored, or nothing.

        Raises:
            CannotStore: nothing is.
        """
        try:
            result = await self._thread.run(self._transaction, work)
        except sqlite3.Error as error:
            self.problem = f"the state cannot be written: {error}"
            raise sqlite_file.cannot_store(self._path, error) from None
        self.problem = ""
        return result

    def close(self) -> None:
        """Wait for what is being written, and close the file."""
        self._thread.close()

    def _transaction[R](self, work: Callable[[sqlite3.Connection], R]) -> R:
        connection = self._thread.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        return result


def _prepare(connection: sqlite3.Connection) -> None:
    connection.isolation_level = None
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != _APPLICATION and not empty:
        raise CannotStore("is the file of another program")
    if version > len(_MIGRATIONS):
        raise CannotStore(f"was written by a later version of the gateway (format {version})")
    connection.execute("PRAGMA journal_mode = WAL")
    # what somebody approved, and that it was used, must survive a power cut
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    for number, statements in enumerate(_MIGRATIONS[version:], version + 1):
        connection.executescript(f"BEGIN; {statements} PRAGMA user_version = {number}; COMMIT;")
