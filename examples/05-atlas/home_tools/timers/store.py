"""The SQLite file of the timers. Whether one has fired is decided in one statement, so that none fires twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

from home_tools.problems import Full, NotThere, Problem

MOST = 1000
"""Timers that may wait."""
_KEPT = 200
"""Of those that have fired, the last ones."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS timers (
  id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, label TEXT NOT NULL, due REAL NOT NULL,
  fired REAL, told REAL
);
CREATE INDEX IF NOT EXISTS waiting ON timers (due) WHERE fired IS NULL;
"""
_SPOILT = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
"""What no room on the disk makes better."""
_COLUMNS = "id, kind, label, due, fired"


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer or reminder; times are seconds since 1970, UTC."""

    id: int
    kind: Literal["timer", "reminder"]
    label: str
    due: float
    fired: float | None = None


class Store:
    """One connection for all threads, one at a time."""

    def __init__(self, path: Path) -> None:
        """Open the file at `path`, or make it.

        Raises:
            Problem: it is none, or cannot be written.
        """
        self._lock = Lock()
        try:
            self._connection = sqlite3.connect(path, timeout=10, check_same_thread=False, isolation_level=None)
        except sqlite3.Error as error:
            raise Problem(f"{path}: {error}: is its folder there, and may it be written?") from None
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")  # what was answered is on the disk
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self.close()
            spoilt = getattr(error, "sqlite_errorcode", 0) & 0xFF in _SPOILT
            cure = (
                "move it away, and timers begin anew" if spoilt else "is there room on its disk, and may it be written?"
            )
            raise Problem(f"{path}: {error}: {cure}") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, kind: Literal["timer", "reminder"], label: str, due: float) -> Timer:
        """Keep a timer.

        Raises:
            Full: too many wait, or the disk is full.
        """
        with self._transaction():
            (waiting,) = self._connection.execute("SELECT count(*) FROM timers WHERE fired IS NULL").fetchone()
            if waiting >= MOST:
                raise Full(f"{MOST} timers wait already: cancel some")
            statement = f"INSERT INTO timers (kind, label, due) VALUES (?, ?, ?) RETURNING {_COLUMNS}"
            return Timer(*self._connection.execute(statement, (kind, label, due)).fetchone())

    def cancel(self, number: int) -> Timer:
        """Remove a timer that has not fired.

        Raises:
            NotThere: none such waits.
        """
        with self._transaction():
            statement = f"DELETE FROM timers WHERE id = ? AND fired IS NULL RETURNING {_COLUMNS}"
            if row := self._connection.execute(statement, (number,)).fetchone():
                return Timer(*row)
        raise NotThere(f"no timer {number} waits: list_timers has those that do")

    def fire(self, now: float) -> list[Timer]:
        """Have all fire that are due by `now` and have not, the earliest first."""
        with self._transaction():
            statement = f"UPDATE timers SET fired = ? WHERE fired IS NULL AND due <= ? RETURNING {_COLUMNS}"
            fired = [Timer(*row) for row in self._connection.execute(statement, (now, now)).fetchall()]
            if fired:
                recent = "SELECT id FROM timers WHERE fired IS NOT NULL ORDER BY fired DESC, id DESC LIMIT ?"
                self._connection.execute(
                    f"DELETE FROM timers WHERE fired IS NOT NULL AND id NOT IN ({recent})", (_KEPT,)
                )
        return sorted(fired, key=lambda timer: (timer.due, timer.id))

    def told(self, number: int, now: float) -> None:
        """Note that the webhook has taken a timer."""
        with self._transaction():
            self._connection.execute("UPDATE timers SET told = ? WHERE id = ?", (now, number))

    def all(self) -> list[Timer]:
        """Return those that wait, the next one first, and then those that have fired, the last one first."""
        return [
            *self._read("fired IS NULL ORDER BY due, id"),
            *self._read("fired IS NOT NULL ORDER BY fired DESC, id DESC"),
        ]

    def untold(self, since: float) -> list[Timer]:
        """Return those that have fired since then and that the webhook has not taken yet, in the order of firing."""
        return self._read("fired > ? AND told IS NULL ORDER BY fired, due, id", since)

    def next_due(self) -> float | None:
        """Return when the next one is due; None where none waits."""
        with self._lock:
            row = self._connection.execute("SELECT min(due) FROM timers WHERE fired IS NULL").fetchone()
        return None if row[0] is None else float(row[0])

    def _read(self, condition: str, *values: float) -> list[Timer]:
        with self._lock:
            rows = self._connection.execute(f"SELECT {_COLUMNS} FROM timers WHERE {condition}", values).fetchall()
        return [Timer(*row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing.

        Raises:
            Problem: the file cannot be written.
        """
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if not isinstance(error, sqlite3.Error):
                    raise
                full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
                reason = "the disk is full" if full else f"the timers cannot be written: {error}"
                raise (Full if full else Problem)(f"{reason}; nothing was changed") from None
