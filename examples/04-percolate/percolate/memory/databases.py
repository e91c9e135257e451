"""The database that the settings name: a file of SQLite, or PostgreSQL by its address."""

from __future__ import annotations

from percolate.memory.sqlite import SqliteStore
from percolate.memory.store import Store

_SCHEMES = ("postgresql://", "postgres://")


def open_store(database: str, *, patience: float = 0) -> Store:
    """Return the store at an address or a path; one that is away is waited for, for `patience` seconds.

    Raises:
        Problem: it cannot be used.
    """
    if not database.startswith(_SCHEMES):
        return SqliteStore(database)
    from percolate.memory.postgres import PostgresStore  # noqa: PLC0415 - the driver, for those who have one

    return PostgresStore(database, patience=patience)
