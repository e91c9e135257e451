"""An HTTP server that ends when its last answer has, for tests that each start one of their own."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import uvicorn

_SOON = 0.2
"""Seconds after which answers that go on are left to uvicorn, which gives them its own time."""
_AGAIN = 0.002
_TICK = 1.0
"""Seconds between two dates of answers."""


class PromptServer(uvicorn.Server):
    """A uvicorn that does not look only ten times a second whether it is to end: three such looks make 0.2 s a test."""

    _loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """Ask for the end, from any thread."""
        self.should_exit = True
        if loop := self._loop:
            loop.call_soon_threadsafe(self._asked.set)

    async def main_loop(self) -> None:
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            while not await self.on_tick(0):  # which sets the date, too
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._asked.wait(), _TICK)
        finally:
            self._loop = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(_SOON):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(_AGAIN)
        except TimeoutError:
            await super().shutdown(sockets)
        else:
            await self.lifespan.shutdown()
