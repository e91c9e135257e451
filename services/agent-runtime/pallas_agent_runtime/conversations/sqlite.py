"""Transcripts in an SQLite file, so that a restart loses no conversation; bounded like those in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from pallas_agent_runtime.conversations.store import IDLE, LIMIT, TOTAL, Transcript, surplus
from pallas_service import sqlite_file
from pallas_service.sqlite_file import SqliteThread

log = structlog.get_logger(__name__)

BUSY = 5.0
"""Seconds to wait for another process that writes to the same file."""

RETRY = 10.0
"""Seconds between two looks whether a file that could not be written to can be again."""

_TABLE = """
CREATE TABLE IF NOT EXISTS conversations
    (agent TEXT, key TEXT, used REAL NOT NULL, transcript TEXT NOT NULL, PRIMARY KEY (agent, key))
"""
_INDEX = "CREATE INDEX IF NOT EXISTS conversations_used ON conversations (agent, used)"
_LOAD = "SELECT transcript FROM conversations WHERE agent = ? AND key = ? AND used >= ?"
_SAVE = "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?, ?)"
_FORGET_OLD = "DELETE FROM conversations WHERE agent = ? AND used < ?"
_OTHERS = "SELECT key, length(transcript) FROM conversations WHERE agent = ? AND key != ? ORDER BY used, key"
"""Of a BLOB SQLite knows the length without reading it, of a TEXT it does not."""
_FORGET = "DELETE FROM conversations WHERE agent = ? AND key = ?"


class SqliteStore[M]:
    """A store of one agent. Several may share a file: each sees its own transcripts only.

    `dump` and `parse` turn messages into text and back. SQLite and both of them run in one thread beside the event
    loop, one call after the other. `clock` gives seconds that go on through a restart.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        agent: str,
        dump: Callable[[list[M]], str],
        parse: Callable[[str], list[M]],
        *,
        limit: int = LIMIT,
        idle: float = IDLE,
        clock: Callable[[], float] = time.time,
        total: int = TOTAL,
    ) -> None:
        self._connection = connection
        self._agent = agent
        self._dump = dump
        self._parse = parse
        self._limit = limit
        self._idle = idle
        self._clock = clock
        self._total = total
        self._thread = SqliteThread(connection, "conversations")
        self._missed = 0
        """Bytes of the longest transcript that could not be written since the problem began."""
        self.problem = ""

    async def load(self, key: str) -> Transcript[M]:
        return await self._thread.run(self._load, key)

    async def save(self, key: str, transcript: Transcript[M]) -> None:
        """Keep it. A disk that is full costs the conversation this turn, and not the caller the answer.

        The problem stays while shorter ones than what was missed find room.
        """
        size, error = await self._thread.run(self._save, key, transcript)
        if error is not None:
            self._missed = max(self._missed, size)
            self.problem = str(error)
            log.error("conversation_not_saved", error=str(error))
        elif size >= self._missed:
            self._solve()

    async def watch(self) -> None:
        """Try to write again while that fails, so that health tells of room on the disk without a turn."""
        while True:
            await asyncio.sleep(RETRY)
            await self.retry()

    async def retry(self) -> None:
        """Write and forget as much as was missed, if anything was."""
        if not self.problem:
            return
        size = self._missed
        try:
            await self._thread.run(self._try, size)
        except Exception as error:
            self.problem = str(error)
        else:
            if size >= self._missed:  # a turn may have missed more meanwhile
                self._solve()

    def _solve(self) -> None:
        """End the problem, if there is one: as much as was missed has room."""
        if self.problem:
            log.info("conversations_kept_again")
        self.problem = ""
        self._missed = 0

    def close(self) -> None:
        """Wait for what is being written, and close the file."""
        self._thread.close()

    def _load(self, key: str) -> Transcript[M]:
        try:
            row = self._connection.execute(_LOAD, (self._agent, key, self._clock() - self._idle)).fetchone()
        except sqlite3.Error as error:
            log.error("conversation_not_read", error=str(error))
            return {}
        try:
            return {agent: self._parse(text) for agent, text in json.loads(row[0]).items()} if row else {}
        except Exception as error:  # written by another version of the engine: it would never be readable again
            log.warning("conversation_not_readable", error=type(error).__name__)
            return {}

    def _save(self, key: str, transcript: Transcript[M]) -> tuple[int, sqlite3.Error | None]:
        """Write a transcript; return its bytes, and why they could not be written."""
        text = json.dumps({agent: self._dump(messages) for agent, messages in transcript.items()}).encode()
        try:
            self._write(key, text)
        except sqlite3.Error as error:
            return len(text), error
        return len(text), None

    def _write(self, key: str, text: bytes) -> None:
        now = self._clock()
        with self._connection:  # of its own and first: where the disk is full, that is what makes room
            self._connection.execute(_FORGET_OLD, (self._agent, now - self._idle))
            others = self._connection.execute(_OTHERS, (self._agent, key)).fetchall()
            expendable = surplus([*others, (key, len(text))], self._limit, self._total)
            self._connection.executemany(_FORGET, [(self._agent, other) for other in expendable])
        with self._connection:
            self._connection.execute(_SAVE, (self._agent, key, now, text))

    def _try(self, size: int) -> None:
        with self._connection:  # of no use since ever: should it stay, the next turn forgets it
            self._connection.execute(_SAVE, (self._agent, "", 0.0, bytes(size)))
        with self._connection:
            self._connection.execute(_FORGET, (self._agent, ""))


@contextlib.contextmanager
def opened[M](
    path: Path, agent: str, dump: Callable[[list[M]], str], parse: Callable[[str], list[M]]
) -> Iterator[SqliteStore[M]]:
    """Yield the store of `agent` in the file at `path`, which is made when it is not there.

    Raises:
        CannotStore: it cannot be made, or is something else.
    """
    try:
        store = SqliteStore(connect(path), agent, dump, parse)
    except (OSError, sqlite3.Error) as error:
        raise sqlite_file.cannot_store(path, error) from None
    with contextlib.closing(store):
        yield store


def connect(path: Path) -> sqlite3.Connection:
    """Open the file with its table, in a folder that is made too; for this user only, also what SQLite puts beside it.

    Raises:
        OSError, sqlite3.Error: it cannot be opened.
    """
    connection = sqlite_file.connect(path, timeout=BUSY)
    try:
        path.chmod(0o600)  # one that was there may be open to others
        connection.execute("PRAGMA journal_mode = WAL")  # survives kill -9 without a sync for every turn
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute(_TABLE)
            connection.execute(_INDEX)
    except BaseException:
        connection.close()
        raise
    return connection
