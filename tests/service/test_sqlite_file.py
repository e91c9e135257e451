"""The file of a service: for its user only, used in one thread, and named in one line when it cannot be used."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from pallas_service.sqlite_file import SqliteThread, cannot_store, connect


def test_the_file_its_folder_and_its_journal_are_for_this_user_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "data.db"
    with closing(connect(path, timeout=1)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE texts (text)")
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == ["data.db", "data.db-shm", "data.db-wal"]
        assert [file.stat().st_mode & 0o777 for file in (path.parent, *files)] == [0o700, 0o600, 0o600, 0o600]


async def test_statements_run_one_after_the_other_in_one_other_thread(tmp_path: Path) -> None:
    thread = SqliteThread(connect(tmp_path / "data.db", timeout=1), "texts")
    names = {await thread.run(lambda: threading.current_thread().name) for _ in range(3)}
    assert len(names) == 1
    assert names.pop().startswith("texts")
    assert await thread.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(sqlite3.OperationalError):
        await thread.run(thread.connection.execute, "SELECT text FROM nothing")
    thread.close()
    with pytest.raises(sqlite3.ProgrammingError):
        thread.connection.execute("SELECT 1")


def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "data.db"
    with pytest.raises(FileNotFoundError) as failure:
        connect(path, timeout=1)
    assert str(cannot_store(path, failure.value)) == f"{path}: no such file or directory"
    assert str(cannot_store(path, sqlite3.OperationalError("Disk is full"))) == f"{path}: disk is full"
