"""The gateway's rows: one file, private, of one layout, and all of a transaction or nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pallas_gateway.state import database as module
from pallas_gateway.state.database import Database
from pallas_service.sqlite_file import CannotStore


def insert(connection: sqlite3.Connection, id_: str = "a") -> None:
    values = (id_, "c", "n", "", "agent", "tool", "d", "{}", "p", "[]", 1.0, "pending", "")
    connection.execute(f"INSERT INTO confirmations VALUES ({', '.join('?' * 13)})", values)


def count(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("SELECT count(*) FROM confirmations").fetchone()
    return int(number)


async def test_what_is_stored_is_there_after_the_end(tmp_path: Path) -> None:
    path = tmp_path / "state" / "gateway.db"
    database = Database(path)
    await database.run(insert)
    assert await database.run(lambda connection: connection.execute("PRAGMA journal_mode").fetchone()) == ("wal",)
    database.close()
    assert path.stat().st_mode & 0o777 == 0o600
    database = Database(path)
    assert await database.run(count) == 1
    database.close()


async def test_a_transaction_that_fails_stores_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "gateway.db")

    def twice(connection: sqlite3.Connection) -> None:
        insert(connection)
        insert(connection)

    with pytest.raises(CannotStore, match=r"(?i)unique"):
        await database.run(twice)
    assert "unique" in database.problem.lower()
    assert await database.run(count) == 0
    assert database.problem == ""

    def broken(connection: sqlite3.Connection) -> None:
        insert(connection)
        raise LookupError

    with pytest.raises(LookupError):
        await database.run(broken)
    assert await database.run(count) == 0
    database.close()


async def test_a_full_disk_is_said_and_got_over(tmp_path: Path) -> None:
    database = Database(tmp_path / "gateway.db")
    await database.run(insert)

    def fill(connection: sqlite3.Connection) -> None:
        insert(connection, "x" * (1 << 20))

    (pages,) = await database.run(lambda connection: connection.execute("PRAGMA page_count").fetchone())
    await database.run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    with pytest.raises(CannotStore, match="full"):
        await database.run(fill)
    assert "full" in database.problem
    assert await database.run(count) == 1
    database.close()


def test_a_library_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(CannotStore, match=r"gateway\.db: needs SQLite 3\.37 or newer, and this Python has 3\."):
        Database(tmp_path / "gateway.db")


def test_files_of_others_and_of_later_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(CannotStore, match="written by a later version of the gateway"):
        Database(path)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE x (y)")
    connection.close()
    with pytest.raises(CannotStore, match="is the file of another program"):
        Database(other)
    (tmp_path / "text.db").write_text("no database at all, and long enough to be read as one" * 50)
    with pytest.raises(CannotStore, match=r"text\.db"):
        Database(tmp_path / "text.db")


async def test_what_waited_under_an_earlier_version_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(module, "_MIGRATIONS", module._MIGRATIONS[:1])
        database = Database(tmp_path / "gateway.db")
    await database.run(insert)
    database.close()
    database = Database(tmp_path / "gateway.db")
    assert await database.run(count) == 0
    await database.run(lambda connection: connection.execute("SELECT asked FROM confirmations"))
    database.close()
