"""Event streams of calls in sessions, most of which are over before anybody has to watch them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial

import anyio
from mcp.server import streamable_http
from sse_starlette import EventSourceResponse
from starlette.types import Receive, Scope, Send

from pallas_service.http.disconnect import PATIENCE

_PARTS = ("_stream_response", "_ping", "_listen_for_exit_signal_with_grace", "_listen_for_disconnect")


class BriefStream(EventSourceResponse):
    """A stream that is watched once it has been open for `PATIENCE` seconds, and not from its first moment.

    Three tasks wait beside each stream: for the next ping, for the end of the connection and for that of the process.
    To start and to end them is a tenth of a turn. Who hangs up before is found to have done so when they begin.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or self.data_sender_callable is None:
            await super().__call__(scope, receive, send)
            return
        try:
            await self._stream_watched_late(self.data_sender_callable, receive, send)
        except BaseExceptionGroup as group:  # of a task group; one error is told as itself
            if len(group.exceptions) != 1:
                raise
            raise group.exceptions[0] from None

    async def _stream_watched_late(
        self, sender: Callable[[], Coroutine[None, None, None]], receive: Receive, send: Send
    ) -> None:
        loop = asyncio.get_running_loop()
        beginning: list[asyncio.Task[None]] = []
        async with anyio.create_task_group() as group:

            async def ending(watch: Callable[[], Awaitable[None]]) -> None:
                await watch()
                group.cancel_scope.cancel()

            async def begin() -> None:
                if self.ping_interval > 0:
                    group.start_soon(ending, partial(self._ping, send))
                group.start_soon(ending, self._listen_for_exit_signal_with_grace)
                group.start_soon(ending, partial(self._listen_for_disconnect, receive))

            # anyio starts tasks from within tasks only
            later = loop.call_later(PATIENCE, lambda: beginning.append(loop.create_task(begin())))
            try:
                group.start_soon(sender)
                await self._stream_response(send)
            finally:
                later.cancel()
                for task in beginning:
                    task.cancel()
            group.cancel_scope.cancel()


@contextmanager
def brief_streams() -> Iterator[None]:
    """Have the SDK answer calls in sessions so meanwhile; as it does by itself where a package has another version."""
    module = vars(streamable_http)
    original = module.get(EventSourceResponse.__name__)
    if original is not EventSourceResponse or not all(hasattr(EventSourceResponse, part) for part in _PARTS):
        yield
        return
    module[EventSourceResponse.__name__] = BriefStream
    try:
        yield
    finally:
        module[EventSourceResponse.__name__] = original
