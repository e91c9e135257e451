"""Timers and reminders: kept over a restart, fired once whatever the clock does, told to who waits and to a webhook."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from home_tools.home import opened
from home_tools.problems import Full, NotThere, Problem
from home_tools.server import server
from home_tools.timers import running
from home_tools.timers import store as store_module
from home_tools.timers.running import Webhook
from home_tools.timers.store import Store
from mcp import Client

HOUR = 3600.0
PATIENCE = 120.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(running, "_LOOK", 0.01)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def under_way(*loops: object) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(loop) for loop in loops]  # type: ignore[arg-type]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def fired(home) -> list[str]:
    return [timer.label for timer in home.timers.store.all() if timer.fired]


async def test_a_timer_fires_when_it_is_due_and_not_before(home, clock, call) -> None:
    assert (await call("set_timer", seconds=60, label="tea")).content[0].text == (
        "Timer 1 (tea) fires on Monday 2026-11-23 12:01 UTC (UTC+00:00)."
    )
    async with under_way(home.timers.run()):
        clock.time += 59.9
        await asyncio.sleep(0.1)  # in which it looks some ten times
        assert fired(home) == []
        clock.time += 0.1
        await until(lambda: fired(home) == ["tea"])


async def test_a_clock_that_jumps_fires_each_once_and_one_that_goes_back_none_again(home, clock, call) -> None:
    for label, seconds in (("second", 2 * HOUR), ("first", HOUR), ("tomorrow", 30 * HOUR)):
        await call("set_timer", seconds=seconds, label=label)
    async with under_way(home.timers.run()):
        clock.time += 24 * HOUR
        await until(lambda: len(fired(home)) == 2)
        at = {timer.id: timer.fired for timer in home.timers.store.all()}
        clock.time -= 24 * HOUR
        await asyncio.sleep(0.1)
        clock.time += 24 * HOUR
        await asyncio.sleep(0.1)
        assert {timer.id: timer.fired for timer in home.timers.store.all()} == at
    assert [timer.label for timer in home.timers.store.all() if not timer.fired] == ["tomorrow"]


async def test_a_timer_outlives_a_restart_and_fires_once(settings, clock) -> None:
    before = opened(settings, clock)
    before.timers.store.add("timer", "tea", clock.now() + 60)
    before.timers.store.close()
    clock.time += HOUR  # while nothing ran
    for _ in range(2):
        after = opened(settings, clock)
        async with under_way(after.timers.run()):
            await until(lambda after=after: fired(after) == ["tea"])
        (timer,) = after.timers.store.all()
        assert (timer.due, timer.fired) == (clock.now() - HOUR + 60, clock.now())
        after.timers.store.close()


def test_two_programs_fire_a_timer_once_together(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "timers.db") for _ in range(2)]
    for number in range(20):
        stores[number % 2].add("timer", str(number), float(number))
    assert sum(len(store.fire(100.0)) for store in stores) == 20
    for store in stores:
        store.close()


async def test_who_waits_hears_how_long_it_takes_and_then_that_it_fired(home, clock, call) -> None:
    await call("set_timer", seconds=60, label="tea")
    heard: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    async with under_way(home.timers.run()), Client(server(home)) as client:
        waiting = asyncio.create_task(
            client.call_tool("wait_for_timer", {"timer": 1, "seconds": 300}, progress_callback=progress)
        )
        await until(lambda: bool(heard))
        clock.time += 60
        answer = await asyncio.wait_for(waiting, PATIENCE)
    assert heard[0] == (0.0, 60.0, "tea: 60 s")
    assert answer.content[0].text == "Timer 1 (tea) fired on Monday 2026-11-23 12:01 UTC (UTC+00:00)."


async def test_waiting_has_an_end_and_a_timer_that_is_not_there_is_said(home, clock, call) -> None:
    await call("set_timer", seconds=HOUR, label="tea")
    waiting = asyncio.create_task(call("wait_for_timer", timer=1, seconds=10))

    def later() -> bool:
        clock.time += 1
        return waiting.done()

    await until(later)
    answer = await waiting
    assert answer.content[0].text == "Timer 1 (tea) fires on Monday 2026-11-23 13:00 UTC (UTC+00:00)."
    assert "there is no timer 7" in (await call("wait_for_timer", timer=7)).content[0].text
    assert (await call("cancel_timer", timer=1)).content[0].text == "Timer 1 (tea) is cancelled."
    assert "no timer 1 waits" in (await call("cancel_timer", timer=1)).content[0].text


@pytest.mark.parametrize(
    ("at", "zone", "said"),
    [
        ("2026-11-23T18:30", "Europe/Oslo", "Reminder 1 (bins) fires on Monday 2026-11-23 17:30 UTC"),
        ("2026-11-23T11:59", "UTC", "is not within the next year"),
        ("2028-01-01T00:00", "UTC", "is not within the next year"),
        ("2027-03-28T02:30", "Europe/Oslo", "clocks are put forward then"),
        ("tonight", "UTC", "is no date and time"),
    ],
)
async def test_a_reminder_is_at_a_time_of_day_somewhere(call, at: str, zone: str, said: str) -> None:
    assert said in (await call("set_reminder", at=at, text="bins", time_zone=zone)).content[0].text


async def test_the_list_has_what_waits_and_then_what_has_fired(home, clock, call) -> None:
    assert (await call("list_timers")).content[0].text == "No timer waits, and none has fired."
    await call("set_timer", seconds=60, label="tea")
    await call("set_timer", seconds=30, label="egg")
    home.timers.store.fire(clock.now() + 30)
    listed = await call("list_timers")
    assert [timer["label"] for timer in listed.structured_content["timers"]] == ["tea", "egg"]
    assert listed.content[0].text.splitlines()[1].startswith("timer 2 (egg) fired on ")


async def test_the_webhook_is_told_at_least_once_in_order_also_after_a_restart(settings, clock) -> None:
    home = opened(settings, clock)
    for label in ("first", "second"):
        home.timers.store.add("timer", label, clock.now())
    told: list[dict[str, object]] = []
    failing = [httpx2.Response(503)]

    def take(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Authorization"] == "Bearer sesame"
        if failing:
            return failing.pop()
        told.append(json.loads(request.content))
        return httpx2.Response(204)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(take)) as client:
        hook = Webhook("http://phone.example/timers", "sesame", home.timers, client)
        async with under_way(home.timers.run(), hook.run()):
            await until(lambda: len(told) == 2 and not home.timers.store.untold(0))
        assert [entry["label"] for entry in told] == ["first", "second"]
        assert told[0] == {
            "id": 1,
            "kind": "timer",
            "label": "first",
            "due": "2026-11-23T12:00:00+00:00",
            "fired": "2026-11-23T12:00:00+00:00",
        }
        home.timers.store.add("timer", "third", clock.now())
        home.timers.store.fire(clock.now())  # and the server ends, before it has told
        home.timers.store.close()
        again = opened(settings, clock)
        async with under_way(Webhook("http://phone.example/", "sesame", again.timers, client).run()):
            await until(lambda: len(told) == 3)
        clock.time += 25 * HOUR
        again.timers.store.add("timer", "fourth", clock.now())
        again.timers.store.fire(clock.now())
        assert [timer.label for timer in again.timers.store.untold(clock.now() - 24 * HOUR)] == ["fourth"]
        again.timers.store.close()


async def test_a_disk_that_is_full_loses_no_timer_and_stops_none_for_ever(
    home, clock, call, monkeypatch, capsys
) -> None:
    await call("set_timer", seconds=60, label="tea")
    store = home.timers.store
    store._connection.execute("PRAGMA max_page_count = 1")  # SQLite's own way to be full

    def fill() -> None:
        for _ in range(200):
            store.add("timer", "x" * 200, clock.now() + HOUR)

    with pytest.raises(Full, match="the disk is full; nothing was changed"):
        fill()
    assert [timer.label for timer in store.all() if timer.label == "tea"] == ["tea"]
    clock.time += 60
    broken = iter([Full("the disk is full; nothing was changed")])
    fire = store.fire

    def fails_once(now: float):
        for error in broken:
            raise error
        return fire(now)

    monkeypatch.setattr(store, "fire", fails_once)
    async with under_way(home.timers.run()):
        await until(lambda: "tea" in fired(home))
    assert "timers: the disk is full; nothing was changed" in capsys.readouterr().err


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "timers.db").write_text("no database at all, but text that is long enough" * 10)
    with pytest.raises(Problem, match=r"timers\.db: file is not a database: move it away"):
        Store(tmp_path / "timers.db")
    assert (tmp_path / "timers.db").read_text().startswith("no database")
    store = Store(tmp_path / "other.db")
    with pytest.raises(NotThere):
        store.cancel(1)
    writer = sqlite3.connect(tmp_path / "other.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    store._connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(Problem, match="the timers cannot be written: database is locked; nothing was changed"):
        store.add("timer", "tea", 1.0)
    writer.close()
    store.close()


def test_there_is_an_end_to_what_waits_and_to_what_is_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(store_module, "MOST", 3)
    monkeypatch.setattr(store_module, "_KEPT", 2)
    store = Store(tmp_path / "timers.db")
    for number in range(3):
        store.add("timer", str(number), float(number))
    with pytest.raises(Full, match="3 timers wait already: cancel some"):
        store.add("timer", "more", 9.0)
    for now in (0.0, 1.0, 2.0):
        store.fire(now)
    assert [timer.label for timer in store.all()] == ["2", "1"]
    assert store.add("timer", "next", 9.0).id == 4  # no number is given twice
    store.close()
