"""The file of registrations: what was acknowledged is there, and a file that is not ours is left alone and named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pallas_registry.registration import messages, store
from pallas_registry.registration.leases import Registration
from pallas_registry.registration.messages import Register
from pallas_registry.registration.store import opened
from pallas_service.sqlite_file import CannotStore
from tests.registry.registration_client import SEED


def registration(time, agent: str = "feature_extractor", **more: object) -> Registration:
    said = messages.read(Register, {**SEED["params"], "agent_id": agent, **more})
    return Registration(agent, "partners", time.now(), said)


async def test_what_was_saved_is_read_back_as_it_was(tmp_path: Path, time) -> None:
    path = tmp_path / "made" / "kept.db"
    first = registration(time, url="https://[2001:db8::1]/mcp", title="Grüße \U0001f600")
    with closing(opened(path)) as file:
        await file.save(first)
        await time.advance(60)
        second = registration(time, "second")
        await file.save(second)
        await file.save(registration(time, "third"))
        await file.forget(["third", "nobody"])
    with closing(opened(path)) as file:
        assert file.load() == [first, second]
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


async def test_the_uptime_that_was_saved_last_is_read_back(tmp_path: Path, time) -> None:
    path = tmp_path / "kept.db"
    with closing(opened(path)) as file:
        await file.save(registration(time))
        await file.save_uptime(lambda: {"harper": b"1", "gone": b"2"})
        await file.save_uptime(lambda: {"harper": b"\0\xff", "x'; --": b"3"})
    with closing(opened(path)) as file:
        assert file.load_uptime() == {"harper": b"\0\xff", "x'; --": b"3"}
        assert [registration.agent for registration in file.load()] == ["feature_extractor"]


def test_a_file_of_a_version_without_uptime_gets_room_for_it(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with closing(opened(path)):
        pass
    with closing(sqlite3.connect(path)) as earlier, earlier:
        earlier.execute("DROP TABLE uptime")
    with closing(opened(path)) as file:
        assert file.load_uptime() == {}


def test_a_file_that_cannot_be_used_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, " * 100)
    with closing(sqlite3.connect(tmp_path / "foreign")) as other, other:
        other.execute("CREATE TABLE mails (text)")
    with closing(opened(tmp_path / "newer")):
        pass
    with closing(sqlite3.connect(tmp_path / "newer")) as newer:
        newer.execute("PRAGMA user_version = 9")
    (tmp_path / "file").touch()
    for name, reason in [
        ("no/such/folder", "no such file or directory"),
        ("file/below", "(not a directory|file exists)"),
        ("", "is a directory"),
        ("text", "file is not a database"),
        ("foreign", "is the file of another program"),
        ("newer", "was written by another version of the registry .format 9, this one reads 1."),
    ]:
        before = (tmp_path / name).read_bytes() if (tmp_path / name).is_file() else b""
        with pytest.raises(CannotStore, match=f"^{tmp_path / name}: {reason}$"):
            opened(tmp_path / name)
        assert not before or (tmp_path / name).read_bytes() == before


async def test_a_damaged_file_is_named(tmp_path: Path, time) -> None:
    path = tmp_path / "kept.db"
    with closing(opened(path)) as file:
        for number in range(200):
            await file.save(registration(time, f"agent-{number}"))
    damaged = bytearray(path.read_bytes())
    damaged[4096 * 3 : 4096 * 6] = b"\xa5" * 4096 * 3
    path.write_bytes(damaged)
    with pytest.raises(CannotStore, match=f"^{path}: (is damaged|database disk image is malformed)"):
        opened(path)


async def test_two_registries_do_not_share_a_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(store, "BUSY", 0.01)
    path = tmp_path / "kept.db"
    with closing(opened(path)), pytest.raises(CannotStore, match="another registry uses it"):
        opened(path)
    with closing(opened(path)):
        pass


async def test_what_another_version_said_is_left_out(tmp_path: Path, time) -> None:
    path = tmp_path / "kept.db"
    with closing(opened(path)) as file:
        await file.save(registration(time))
    with closing(sqlite3.connect(path)) as other, other:
        rows = [("a", "{"), ("b", "[]"), ("c", '{"agent_id": "c"}'), ("d", "7")]
        other.executemany("INSERT INTO registrations VALUES (?, 'partners', '2026-03-12T10:00:00Z', ?)", rows)
        other.execute("INSERT INTO registrations SELECT 'e', token, 'yesterday', said FROM registrations LIMIT 1")
    with closing(opened(path)) as file:
        assert [kept.agent for kept in file.load()] == ["feature_extractor"]


async def test_a_full_disk_is_an_error_of_the_store(tmp_path: Path, time) -> None:
    large = {"tools": ["t"], "schema": {"t": {"input": {"x": "y" * 60_000}, "output": {}}}}
    with closing(opened(tmp_path / "kept.db")) as file:
        file._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(CannotStore, match="full"):
            await file.save(registration(time, capabilities=large))
