"""A stream of one quick answer is not watched; any other one is, as it always was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp.server import streamable_http
from sse_starlette import EventSourceResponse
from sse_starlette.sse import AppStatus
from starlette.types import Message

from pallas_agent_runtime.web import brief_streams
from pallas_agent_runtime.web.brief_streams import BriefStream

PATIENCE = 60.0
"""Seconds for anything that must come."""


class Call:
    """A call in a session as the SDK answers it: what `sender` is told to send, and what a client gets and does."""

    def __init__(self, kind: type[EventSourceResponse], method: str = "POST", **options: Any) -> None:
        self.writer, self._reader = anyio.create_memory_object_stream[dict[str, str]](0)
        self.response = kind(content=self._reader, data_sender_callable=self._sender, **options)
        self.sent: list[Message] = []
        self.listened = 0
        self.hung_up = asyncio.Event()
        self.answer = asyncio.Event()
        self.failure: Exception | None = None
        self._scope = {"type": "http", "method": method}
        self._changed = asyncio.Event()

    async def _sender(self) -> None:
        async with self.writer:
            await self.answer.wait()
            if self.failure:
                raise self.failure
            await self.writer.send({"event": "message", "data": '{"id": 1}'})

    async def _receive(self) -> Message:
        self.listened += 1
        self._changed.set()
        await self.hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        self._changed.set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    async def run(self) -> None:
        async with asyncio.timeout(PATIENCE), self._reader, self.writer:  # which the SDK closes itself
            await self.response(self._scope, self._receive, self._send)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


async def test_a_quick_answer_is_sent_as_ever_and_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief_streams, "PATIENCE", PATIENCE)
    theirs, ours = Call(EventSourceResponse), Call(BriefStream)
    for call in (theirs, ours):
        call.answer.set()
        await call.run()
    assert ours.sent == theirs.sent
    assert ours.body == b'event: message\r\ndata: {"id": 1}\r\n\r\n'
    assert [message["type"] for message in ours.sent] == ["http.response.start"] + 2 * ["http.response.body"]
    assert ours.listened == 0


async def test_a_quick_answer_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    original = loop.call_later
    timers: list[asyncio.TimerHandle] = []

    def call_later(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
        timers.append(original(*arguments, **options))
        return timers[-1]

    monkeypatch.setattr(brief_streams, "PATIENCE", PATIENCE)
    monkeypatch.setattr(loop, "call_later", call_later)
    call = Call(BriefStream)
    call.answer.set()
    await call.run()
    assert [timer.cancelled() for timer in timers] == [True]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_headers_are_there_before_the_answer() -> None:
    call = Call(BriefStream)
    running = asyncio.create_task(call.run())
    await call.until(lambda: bool(call.sent))
    assert (call.sent[0]["type"], call.body) == ("http.response.start", b"")
    call.answer.set()
    await running


async def test_who_hangs_up_ends_a_stream_that_takes_longer() -> None:
    call = Call(BriefStream)
    running = asyncio.create_task(call.run())
    await call.until(lambda: call.listened > 0)
    call.hung_up.set()
    await running
    assert not call.answer.is_set()
    assert call.body == b""


async def test_who_hung_up_before_somebody_watched_is_found_to_have_done_so() -> None:
    call = Call(BriefStream)
    call.hung_up.set()
    await call.run()
    assert not call.answer.is_set()


async def test_the_end_of_the_process_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(BriefStream)
    monkeypatch.setattr(AppStatus, "should_exit", True)
    await call.run()
    assert not call.answer.is_set()


async def test_it_is_kept_alive_by_pings() -> None:
    call = Call(BriefStream, ping=0.01)
    running = asyncio.create_task(call.run())
    await call.until(lambda: b": ping" in call.body)
    call.answer.set()
    await running
    assert b'data: {"id": 1}' in call.body


async def test_without_pings_it_is_watched_all_the_same() -> None:
    call = Call(BriefStream, ping=0)
    running = asyncio.create_task(call.run())
    await call.until(lambda: call.listened > 0)
    call.answer.set()
    await running
    assert b": ping" not in call.body


@pytest.mark.parametrize("kind", [EventSourceResponse, BriefStream])
async def test_a_failure_is_told_as_itself(kind: type[EventSourceResponse]) -> None:
    call = Call(kind)
    call.failure = ValueError("no")
    call.answer.set()
    with pytest.raises(ValueError, match="no"):
        await call.run()


async def test_a_caller_that_is_cancelled_ends_it() -> None:
    call = Call(BriefStream)
    running = asyncio.create_task(call.run())
    await call.until(lambda: call.listened > 0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_stream_that_is_there_to_stay_is_watched_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief_streams, "PATIENCE", 10 * PATIENCE)
    call = Call(BriefStream, method="GET")
    call.hung_up.set()
    await call.run()
    assert not call.answer.is_set()


def test_the_sdk_takes_it_for_a_time_and_none_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def current() -> Any:
        return vars(streamable_http)["EventSourceResponse"]

    with brief_streams.brief_streams():
        assert current() is BriefStream
    assert current() is EventSourceResponse
    monkeypatch.delattr(EventSourceResponse, "_ping")
    with brief_streams.brief_streams():
        assert current() is EventSourceResponse
