"""Conversations in a file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fast_agent import PromptMessageExtended
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, ImageContent, TextContent
from structlog.testing import capture_logs

from pallas_agent_runtime import engine
from pallas_agent_runtime.conversations.sqlite import SqliteStore, connect, opened
from pallas_agent_runtime.conversations.store import key
from pallas_service.sqlite_file import CannotStore

Said = PromptMessageExtended
Make = Callable[..., SqliteStore[Said]]


def user(text: str) -> Said:
    return Said(role="user", content=[TextContent(type="text", text=text)])


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SqliteStore[Said]] = []

    def one(agent: str = "harper", **bounds: Any) -> SqliteStore[Said]:
        made.append(SqliteStore(connect(tmp_path / "kept.db"), agent, engine.to_json, engine.from_json, **bounds))
        return made[-1]

    yield one
    for store in made:
        store.close()


async def test_a_conversation_is_read_back_by_another_process_as_it_was(make: Make) -> None:
    call = CallToolRequest(method="tools/call", params=CallToolRequestParams(name="t", arguments={"a": 1}))
    result = CallToolResult(content=[TextContent(type="text", text="42")])
    image = ImageContent(type="image", data="AAAA", mime_type="image/png")
    said = {
        "harper": [
            Said(role="user", content=[TextContent(type="text", text="\u202ehi \U0001f600"), image]),
            Said(role="assistant", content=[], tool_calls={"c": call}),
            Said(role="user", content=[], tool_results={"c": result}),
        ],
        "child": [user("inner")],
    }
    await make().save("k", said)
    other = make()
    assert await other.load("k") == said
    assert await other.load("unknown") == {}


async def test_agents_share_a_file_and_nothing_in_it(make: Make) -> None:
    await make("harper").save("k", {"x": [user("secret")]})
    other = make("mallory", limit=1)
    assert await other.load("k") == {}
    await other.save("k", {"x": [user("own")]})
    assert list(await make("harper").load("k")) == ["x"]


async def test_the_least_recently_used_goes_first(make: Make) -> None:
    now = [0.0]
    store = make(limit=2, clock=lambda: now[0])
    for name in ("a", "b", "a", "c"):
        now[0] += 1
        await store.save(name, {"x": [user(name)]})
    assert [bool(await store.load(name)) for name in ("a", "b", "c")] == [True, False, True]


async def test_all_of_an_agents_conversations_have_a_size_together(make: Make) -> None:
    now = [0.0]
    store = make(total=1_500, clock=lambda: now[0])
    for name in ("a", "b", "a", "c"):
        now[0] += 1
        await store.save(key(name, ""), {"x": [user(name * 400)]})
    assert [bool(await store.load(key(name, ""))) for name in ("a", "b", "c")] == [True, False, True]
    await store.save(key("d", ""), {"x": [user("d" * 2_000)]})  # the last one is kept whatever its size
    assert [bool(await store.load(key(name, ""))) for name in ("a", "c", "d")] == [False, False, True]


async def test_one_callers_flood_leaves_anothers_conversation(make: Make) -> None:
    now = [0.0]
    store = make(limit=20, total=20_000, clock=lambda: now[0])
    said = {"x": [user("kept")]}
    await store.save(key("quiet", "bob", verified=True), said)
    for handle in range(60):
        now[0] += 1
        name = key(f"flood {handle}", "mallory", verified=True)
        await store.save(name, {"x": [user("y" * (1 if handle < 30 else 6_000))]})
    assert await store.load(key("quiet", "bob", verified=True)) == said
    left = [bool(await store.load(key(f"flood {handle}", "mallory", verified=True))) for handle in (56, 57, 59)]
    assert left == [False, True, True]


async def test_a_full_disk_has_room_again_once_something_is_forgotten(tmp_path: Path) -> None:
    now, connection = [0.0], connect(tmp_path / "kept.db")
    connection.execute("PRAGMA max_page_count = 20")
    store = SqliteStore[Said](connection, "harper", engine.to_json, engine.from_json, idle=10, clock=lambda: now[0])
    with closing(store):
        said = {"x": [user("a" * 12_000)]}
        for name in "abcdefgh":
            await store.save(name, said)
        assert await store.load("a") == said
        assert await store.load("h") == {}
        assert store.problem == "database or disk is full"
        now[0] += 11
        await store.save("h", said)
        assert await store.load("h") == said
        assert store.problem == ""


@contextmanager
def small(folder: Path, *, pages: int) -> Iterator[tuple[SqliteStore[Said], sqlite3.Connection]]:
    """A store on a disk that is full after so many pages, and the connection that gives it more."""
    connection = connect(folder / "kept.db")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with closing(SqliteStore[Said](connection, "harper", engine.to_json, engine.from_json)) as store:
        yield store, connection


async def test_room_on_the_disk_is_seen_without_a_turn(tmp_path: Path) -> None:
    with small(tmp_path, pages=4) as (store, connection):
        await store.save("a", {"x": [user("a" * 40_000)]})
        await store.retry()
        assert store.problem == "database or disk is full"
        connection.execute("PRAGMA max_page_count = 1000")
        await store.retry()
        assert store.problem == ""
        assert connection.execute("SELECT key FROM conversations").fetchall() == []


async def test_a_short_turn_that_finds_room_does_not_hide_that_a_long_one_did_not(tmp_path: Path) -> None:
    short, middle, long = ({"x": [user("a" * size)]} for size in (1, 20_000, 40_000))
    with small(tmp_path, pages=12) as (store, connection):
        await store.save("a", long)
        await store.save("b", short)
        assert await store.load("b") == short
        assert store.problem == "database or disk is full"
        await store.save("c", middle)
        await store.save("d", middle)
        assert await store.load("d") == {}, "missed as well, but less"
        await store.retry()
        assert store.problem == "database or disk is full"
        connection.execute("PRAGMA max_page_count = 30")
        await store.save("d", middle)
        assert await store.load("d") == middle
        assert store.problem == "database or disk is full"
        connection.execute("PRAGMA max_page_count = 1000")
        with capture_logs() as lines:
            await store.save("a", long)
            assert store.problem == ""
            await store.save("b", short)
        assert [line["event"] for line in lines] == ["conversations_kept_again"]


async def test_room_for_what_was_missed_first_is_not_room_for_what_was_missed_meanwhile(tmp_path: Path) -> None:
    with small(tmp_path, pages=4) as (store, connection):
        await store.save("a", {"x": [user("a" * 20_000)]})
        connection.execute("PRAGMA max_page_count = 14")
        await asyncio.gather(store.save("b", {"x": [user("b" * 80_000)]}), store.retry())
        assert store.problem == "database or disk is full"


async def test_what_was_missed_once_is_no_measure_for_the_next_problem(tmp_path: Path) -> None:
    with small(tmp_path, pages=4) as (store, connection):
        await store.save("a", {"x": [user("a" * 40_000)]})
        connection.execute("PRAGMA max_page_count = 1000")
        await store.retry()
        connection.execute("PRAGMA query_only = ON")
        await store.save("b", {"x": [user("b" * 100)]})
        assert store.problem == "attempt to write a readonly database"
        connection.execute("PRAGMA query_only = OFF")
        await store.save("b", {"x": [user("b" * 100)]})
        assert store.problem == ""


async def test_an_idle_conversation_ages_out_and_leaves_the_file(make: Make, tmp_path: Path) -> None:
    now = [1000.0]
    store = make(idle=10, clock=lambda: now[0])
    await store.save("a", {"x": [user("a")]})
    now[0] += 10
    assert await store.load("a")
    now[0] += 0.1
    assert not await store.load("a")
    await store.save("b", {})
    with closing(sqlite3.connect(tmp_path / "kept.db")) as file:
        assert file.execute("SELECT key FROM conversations").fetchall() == [("b",)]


def test_only_its_owner_may_read_the_file(make: Make, tmp_path: Path) -> None:
    (tmp_path / "kept.db").touch(mode=0o644)
    asyncio.run(make().save("k", {}))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("kept.db", "kept.db-wal", "kept.db-shm"), 0o600)


async def test_the_event_loop_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    written, go_on = threading.Event(), threading.Event()

    def slow(said: list[Said]) -> str:
        written.set()
        assert go_on.wait(30)
        return engine.to_json(said)

    with opened(tmp_path / "kept.db", "harper", slow, engine.from_json) as store:
        saving = asyncio.create_task(store.save("k", {"x": [user("a")]}))
        await asyncio.to_thread(written.wait, 30)
        assert not saving.done()
        go_on.set()
        await saving
        assert await store.load("k")


async def test_what_cannot_be_written_costs_no_answer(make: Make, tmp_path: Path) -> None:
    store = make()
    with closing(sqlite3.connect(tmp_path / "kept.db")) as file:
        file.execute("DROP TABLE conversations")
    with capture_logs() as lines:
        await store.save("k", {})
        assert await store.load("k") == {}
    assert [(line["event"], line["error"]) for line in lines] == [
        ("conversation_not_saved", "no such table: conversations"),
        ("conversation_not_read", "no such table: conversations"),
    ]


def test_what_tools_are_given_weighs() -> None:
    call = CallToolRequest(method="tools/call", params=CallToolRequestParams(name="t", arguments={"a": "x" * 1_000}))
    assert engine.weigh(Said(role="assistant", content=[], tool_calls={"c": call})) > 1_000


async def test_what_another_version_wrote_is_an_empty_conversation(make: Make, tmp_path: Path) -> None:
    store = make(clock=lambda: 0.0)
    with closing(sqlite3.connect(tmp_path / "kept.db")) as file, file:
        file.executemany(
            "INSERT INTO conversations VALUES ('harper', ?, 0, ?)", [("a", "{"), ("b", "[]"), ("c", '{"x": "[1]"}')]
        )
    assert [await store.load(key) for key in "abc"] == [{}, {}, {}]


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, " * 100)
    for name, reason in [
        ("no/such/file", "no such file or directory"),
        ("text", "file is not a database"),
        ("", "is a dir"),
    ]:
        with (
            pytest.raises(CannotStore, match=f"^{tmp_path / name}: {reason}"),
            opened(tmp_path / name, "harper", engine.to_json, engine.from_json),
        ):
            pass
