"""Registrations in an SQLite file: what was acknowledged is there after `kill -9` and after a power cut.

Beside them the uptime of all agents, as of the last time that it was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import structlog

from pallas_contract.documents.health import timestamp
from pallas_registry.registration import messages
from pallas_registry.registration.errors import Refusal
from pallas_registry.registration.leases import Registration
from pallas_service import sqlite_file
from pallas_service.sqlite_file import CannotStore, SqliteThread

if TYPE_CHECKING:
    import sqlite3

_APPLICATION = 0x70_61_6C_6C
_FORMAT = 1
"""`PRAGMA application_id` ("pall") and `user_version`: whose file it is, and how it is laid out."""
BUSY = 2.0
"""Seconds to wait for another registry to let go of the file: one that is just being replaced."""
_TABLE = (
    "CREATE TABLE registrations (agent TEXT PRIMARY KEY, token TEXT NOT NULL, since TEXT NOT NULL, said TEXT NOT NULL)"
)
_UPTIME = "CREATE TABLE IF NOT EXISTS uptime (agent TEXT PRIMARY KEY, record BLOB NOT NULL)"
"""No other format: an earlier version of the registry leaves a table alone that it does not know."""
_SAVE = "INSERT OR REPLACE INTO registrations VALUES (?, ?, ?, ?)"

_log = structlog.get_logger()


class RegistrationStore(Protocol):
    """A store of registrations. `save` and `forget` raise CannotStore; when they return it is stored."""

    def load(self) -> list[Registration]:
        """Return all of them, the oldest first."""

    async def save(self, registration: Registration) -> None: ...

    async def forget(self, agents: list[str]) -> None: ...

    def load_uptime(self) -> dict[str, bytes]:
        """Return what `save_uptime` was given last, by agent."""

    async def save_uptime(self, records: Callable[[], Mapping[str, bytes]]) -> None:
        """Save what `records` returns, by agent; it is not called where nothing lasts."""

    def close(self) -> None:
        """Wait for what is being written."""


class MemoryRegistrations:
    """Registrations without a file: a restart forgets them."""

    def load(self) -> list[Registration]:
        return []

    async def save(self, registration: Registration) -> None:
        """Do nothing."""

    async def forget(self, agents: list[str]) -> None:
        """Do nothing."""

    def load_uptime(self) -> dict[str, bytes]:
        return {}

    async def save_uptime(self, records: Callable[[], Mapping[str, bytes]]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SqliteRegistrations:
    """Registrations in one SQLite file, used by this process alone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = SqliteThread(connection, "registrations")

    def load(self) -> list[Registration]:
        rows = self._connection.execute("SELECT agent, token, since, said FROM registrations ORDER BY since, agent")
        registrations = []
        for agent, token, since, text in rows:
            try:
                message = messages.read(messages.Register, json.loads(text))
                registrations.append(Registration(agent, token, datetime.fromisoformat(since), message))
            # written under another version's rules, or by another hand
            except (Refusal, ValueError, TypeError, AttributeError) as error:
                _log.warning("a kept registration is not usable", agent=agent, reason=str(error))
        return registrations

    async def save(self, registration: Registration) -> None:
        text = registration.params.model_dump_json(by_alias=True, exclude_defaults=True)
        row = (registration.agent, registration.token, timestamp(registration.since), text)
        await self._write(lambda: self._connection.execute(_SAVE, row))

    async def forget(self, agents: list[str]) -> None:
        rows = [(agent,) for agent in agents]
        await self._write(lambda: self._connection.executemany("DELETE FROM registrations WHERE agent = ?", rows))

    def load_uptime(self) -> dict[str, bytes]:
        rows = self._connection.execute("SELECT agent, record FROM uptime")
        return {agent: record for agent, record in rows if isinstance(record, bytes)}

    async def save_uptime(self, records: Callable[[], Mapping[str, bytes]]) -> None:
        rows = list(records().items())

        def write() -> None:
            self._connection.execute("DELETE FROM uptime")
            self._connection.executemany("INSERT INTO uptime VALUES (?, ?)", rows)

        await self._write(write)

    def close(self) -> None:
        """Wait for what is being written, and close the file."""
        self._thread.close()

    async def _write(self, work: Callable[[], object]) -> None:
        import sqlite3  # noqa: PLC0415 - as in `opened`

        def run() -> None:
            with self._connection:
                work()

        try:
            await self._thread.run(run)
        except sqlite3.Error as error:
            raise CannotStore(str(error)) from None


def opened(path: Path) -> SqliteRegistrations:
    """Open the file at `path`, made when it is not there, for this user only; its folder too.

    Raises:
        CannotStore: it cannot be made, is something else, or another registry uses it.
    """
    import sqlite3  # noqa: PLC0415 - most registries have no such file

    try:
        connection = sqlite_file.connect(path, timeout=BUSY)
    except (OSError, sqlite3.Error) as error:
        raise sqlite_file.cannot_store(path, error) from None
    try:
        _prepare(connection)
    except (CannotStore, sqlite3.Error) as error:
        connection.close()
        reason = "another registry uses it" if "locked" in str(error) else str(error)
        raise CannotStore(f"{path}: {reason}") from None
    return SqliteRegistrations(connection)


def _prepare(connection: sqlite3.Connection) -> None:
    """Take the file for this process; check which program wrote it, and that it is whole."""
    # a second registry on the same volume would overwrite what this one keeps in memory
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    # what was acknowledged must survive a power cut, and registrations are rare enough to pay for it
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN EXCLUSIVE")
    (application,), (layout,) = (
        connection.execute(f"PRAGMA {key}").fetchone() for key in ("application_id", "user_version")
    )
    # a file without tables is taken over: an aborted start leaves one behind
    empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if empty and application == 0:
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
    elif application != _APPLICATION:
        raise CannotStore("is the file of another program")
    elif layout != _FORMAT:
        raise CannotStore(f"was written by another version of the registry (format {layout}, this one reads {_FORMAT})")
    connection.execute(_UPTIME)
    connection.commit()
    (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise CannotStore(f"is damaged ({state}): move it away, agents register again")
