"""The list of changes and its readers: bounded, complete, in order, and no reader waits for another."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from pallas_contract.documents.reason import Reason
from pallas_registry.http.events import Streams
from pallas_registry.state.history import Change, History


def change(time, number: int, agent: str = "harper") -> Change:
    return Change(agent, "ok", "error", Reason("NoAnswer", f"reason {number}"), time.now())


@pytest.fixture
def history(time) -> History:
    history = History(keep=3)
    for number in range(1, 6):
        history.record(change(time, number))
    return history


def reasons(changes) -> list[str]:
    return [each.reason.message for each in changes]


def test_the_last_ones_newest_first(history: History) -> None:
    assert reasons(history.last(2)) == ["reason 5", "reason 4"]
    assert reasons(history.last(9)) == ["reason 5", "reason 4", "reason 3"]
    assert History().last(5) == []


@pytest.mark.parametrize(
    ("seen", "numbers", "missed"),
    [(5, [], False), (4, [5], False), (2, [3, 4, 5], False), (1, [3, 4, 5], True), (0, [3, 4, 5], True)],
)
def test_what_came_after(history: History, seen: int, numbers: list[int], missed: bool) -> None:
    news = history.after(seen)
    assert ([number for number, _ in news.changes], news.missed, news.number) == (numbers, missed, 5)


def test_a_number_of_another_run_is_as_good_as_none(history: History) -> None:
    assert history.after(99) == history.after(0)
    assert History().after(7).changes == ()


async def test_waiting_ends_at_the_next_ring_and_at_once_when_it_was_missed(history: History) -> None:
    rings = history.after(5).rings
    waiting = asyncio.create_task(history.wait(rings))
    await asyncio.sleep(0)
    assert not waiting.done()
    history.ring()
    await waiting
    await history.wait(rings)


async def read(stream, events: int) -> list[str]:
    """The next `events` of a stream."""
    return [(await anext(stream)).decode() for _ in range(events)]


async def test_a_stream_starts_now_and_tells_each_change(time) -> None:
    history = History()
    history.record(change(time, 1))
    stream = Streams(history, run="a1").follow("")
    assert await read(stream, 1) == ["id: a1-1\nretry: 2000\n\n"]
    following = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    history.record(change(time, 2))
    id_line, event, data = (await following).decode().splitlines()[:3]
    assert (id_line, event) == ("id: a1-2", "event: change")
    assert json.loads(data.removeprefix("data: ")) == {
        "time": "2026-03-12T10:00:00Z",
        "agent": "harper",
        "old": "ok",
        "new": "error",
        "reason": "reason 2",
        "code": "NoAnswer",
    }
    await stream.aclose()


@pytest.mark.parametrize(
    ("last_id", "first"),
    [("a1-4", "id: a1-5"), ("a1-1", "event: missed"), ("old-4", "event: missed"), ("nonsense", "event: missed")],
)
async def test_a_stream_goes_on_where_it_was(history: History, last_id: str, first: str) -> None:
    stream = Streams(history, run="a1").follow(last_id)
    assert (await read(stream, 2))[1].startswith(first)
    await stream.aclose()


async def test_a_reason_alone_is_an_update(time) -> None:
    history = History()
    stream = Streams(history, run="a").follow("")
    await read(stream, 1)
    history.ring()
    following = asyncio.ensure_future(anext(stream))
    for _ in range(3):
        await asyncio.sleep(0)
    history.ring()
    assert await following == b"event: update\ndata: {}\n\n"
    await stream.aclose()


async def test_silence_is_filled() -> None:
    stream = Streams(History(), run="a", keep_alive=0.001).follow("")
    assert (await read(stream, 2))[1] == ": still here\n\n"
    await stream.aclose()


async def test_the_end_is_told_after_the_last_change(time) -> None:
    history, chunks = History(), []
    streams = Streams(history, run="a")

    async def consume() -> None:
        chunks.extend([chunk async for chunk in streams.follow("")])

    reader = asyncio.create_task(consume())
    await asyncio.sleep(0)
    assert streams.open == 1
    history.record(change(time, 1))
    history.close()
    await reader
    assert len(chunks) == 2
    assert streams.open == 0


async def test_readers_of_any_pace_hear_everything_in_order(time) -> None:
    """Two readers, one of which dawdles, of 10,000 changes: nothing lost, invented or reordered."""
    history, dice, said = History(keep=10_000), random.Random(3), []
    streams = Streams(history, run="a")
    heard: list[list[str]] = [[], []]

    async def consume(slot: int, pauses: int) -> None:
        async for chunk in streams.follow(""):
            for line in chunk.decode().splitlines():
                if line.startswith('data: {"time'):
                    heard[slot].append(json.loads(line[6:])["reason"])
            for _ in range(pauses):
                await asyncio.sleep(0)

    readers = [asyncio.create_task(consume(0, 0)), asyncio.create_task(consume(1, 3))]
    await asyncio.sleep(0)
    for number in range(10_000):
        history.record(change(time, number))
        said.append(f"reason {number}")
        if dice.random() < 0.3:
            await asyncio.sleep(0)
    history.close()
    await asyncio.gather(*readers)
    assert heard == [said, said]
