"""A connection between two members that is slow, or breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest

from pallas_testing.targets import relay
from pallas_testing.targets.relay import Course, Relay

FREE = ("127.0.0.1", 0)


@asynccontextmanager
async def relayed(course: Course) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection by a relay to a server that answers with what it is sent, twice."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read()
        writer.write(data * 2)
        writer.close()

    async with await asyncio.start_server(answer, *FREE) as server:
        address = server.sockets[0].getsockname()
        async with await asyncio.start_server(Relay(course, address).connected, *FREE) as between:
            reader, writer = await asyncio.open_connection(*between.sockets[0].getsockname())
            yield reader, writer
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            between.close()
            await between.wait_closed()  # its connections have ended, too


async def asked(course: Course, data: bytes) -> tuple[bytes, float]:
    """Return the answer by a relay, and the seconds until it came."""
    async with relayed(course) as (reader, writer):
        began = asyncio.get_running_loop().time()
        writer.write(data)
        writer.write_eof()
        return await reader.read(), asyncio.get_running_loop().time() - began


def test_it_passes_everything_on_and_the_end_of_it() -> None:
    data = bytes(range(256)) * 4096
    text, _ = asyncio.run(asked(Course(latency=0, jitter=0.001, cut_after=None), data))
    assert text == data * 2


def test_it_is_slow_in_both_ways() -> None:
    text, seconds = asyncio.run(asked(Course(latency=0.1, jitter=0, cut_after=None), b"abc"))
    assert text == b"abcabc"
    assert seconds >= 0.2


def test_it_resets_a_connection_after_so_many_bytes_of_the_answer() -> None:
    text, _ = asyncio.run(asked(Course(latency=0, jitter=0, cut_after=6), b"abc"))
    assert text == b"abcabc"

    async def cut() -> None:
        async with relayed(Course(latency=0, jitter=0, cut_after=4)) as (reader, writer):
            writer.write(b"abc")
            writer.write_eof()
            with pytest.raises(ConnectionResetError):
                await reader.readexactly(6)

    asyncio.run(cut())


def test_who_is_not_there_is_refused() -> None:
    async def ask() -> bytes:
        nowhere = Relay(Course(latency=0, jitter=0, cut_after=None), ("127.0.0.1", 1))
        async with await asyncio.start_server(nowhere.connected, *FREE) as between:
            reader, writer = await asyncio.open_connection(*between.sockets[0].getsockname())
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            return b""

    asyncio.run(ask())


def test_another_course_ends_what_is_on_the_one_of_before_and_holds_for_all_after_it() -> None:
    straight = Course(latency=0, jitter=0, cut_after=None)

    async def change(folder: Path) -> tuple[bytes, bytes]:
        greeted = []

        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            greeted.append(writer)

        async with await asyncio.start_server(greet, *FREE) as server:
            between = Relay(straight, server.sockets[0].getsockname())
            path = str(folder / "control")
            async with (
                await asyncio.start_server(between.connected, *FREE) as relaying,
                await asyncio.start_unix_server(between.controlled, path),
            ):
                address = relaying.sockets[0].getsockname()
                reader, writer = await asyncio.open_connection(*address)
                assert await reader.readexactly(5) == b"hello"
                line = json.dumps({**straight, "cut_after": 2}).encode() + b"\n"
                control, telling = await asyncio.open_unix_connection(path)
                telling.write(line)
                confirmed = await control.readline()
                with pytest.raises(ConnectionResetError):
                    await reader.read()
                after, other = await asyncio.open_connection(*address)
                with pytest.raises(ConnectionResetError):
                    await after.readexactly(5)
                for end in (writer, telling, other, *greeted):
                    end.close()
                return line, confirmed

    with TemporaryDirectory() as folder:
        line, confirmed = asyncio.run(change(Path(folder)))
    assert confirmed == line


def test_another_course_comes_while_the_end_of_a_closed_connection_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    straight = Course(latency=0, jitter=0, cut_after=None)

    async def change() -> None:
        passed = asyncio.Event()

        async def passing(*_: object) -> None:  # the end of a connection waits here as long as any piece of it
            await passed.wait()

        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        monkeypatch.setattr(relay, "_pass", passing)
        async with await asyncio.start_server(accept, *FREE) as server:
            between = Relay(straight, server.sockets[0].getsockname())
            async with await asyncio.start_server(between.connected, *FREE) as relaying:
                _, writer = await asyncio.open_connection(*relaying.sockets[0].getsockname())
                while not between._open:
                    await asyncio.sleep(0)
                relay._reset(writer)
                while all(end.get_extra_info("socket").fileno() != -1 for end in between._open):
                    await asyncio.sleep(0)
                between.change(straight)
                passed.set()
                relaying.close()
                await relaying.wait_closed()

    asyncio.run(change())


def test_a_course_that_comes_while_a_connection_is_made_holds_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    between = Relay(Course(latency=0, jitter=0, cut_after=None), FREE)
    cut = Course(latency=0, jitter=0, cut_after=2)
    courses: list[Course] = []

    async def connect(*_: object) -> tuple[Mock, Mock]:
        between.change(cut)
        return Mock(), Mock()

    async def passing(_: object, __: object, course: Course, limit: int | None) -> None:
        courses.append(course)

    monkeypatch.setattr(asyncio, "open_connection", connect)
    monkeypatch.setattr(relay, "_pass", passing)
    asyncio.run(between.connected(Mock(), Mock()))
    assert courses == [cut, cut]


def test_it_takes_no_more_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_PIECES", 2)
    reads: list[int] = []

    class Source:
        async def read(self, _: int) -> bytes:
            reads.append(len(reads))
            await asyncio.sleep(0)
            return b"x"

    async def fill() -> None:
        course = Course(latency=3600, jitter=0, cut_after=None)
        passing = asyncio.create_task(relay._pass(Source(), None, course, None))  # type: ignore[arg-type]
        for _ in range(100):
            await asyncio.sleep(0)
        passing.cancel()

    asyncio.run(fill())
    assert len(reads) == 4, "one is on its way, two wait, and one waits for room"
