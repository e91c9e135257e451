"""The HTTP server of a service and its end: told once it finishes what was begun, told twice it stops at once.

Either way the process ends in time, whatever those that it speaks to do meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.server import Server

from pallas_service.http.connections import KEEP_ALIVE_SECONDS
from pallas_service.http.protocol import BoundedProtocol, Joining

log = structlog.get_logger(__name__)

GRACE = 30.0
"""Seconds that open calls get to finish after SIGTERM; a container needs a longer `stop_grace_period`."""
LAST_WORDS = 0.5
"""Seconds that answers get to leave before the event streams of idle sessions are ended."""
LINGER = 3
"""Seconds after which a connection that is still open is cut."""
END = 8.0
"""Seconds for the end of the process once no call is open: with `GRACE` less than a container has, and alone less than
`pallas` gives. What is waited for on the way has bounds of its own, which are shorter."""
TICK = 1.0
"""Seconds between two dates of answers: the header has no fractions."""
REST = 3.0
"""Seconds for what is left once the event loop has nothing to do: the last spans, and threads that look up names."""


class Stop:
    """SIGTERM and SIGINT as events of the running loop."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._received)

    def _received(self) -> None:
        (self.insisted if self.asked.is_set() else self.asked).set()


class _Protocol(BoundedProtocol):
    connection = Joining


class HttpServer(Server):
    """uvicorn without its signal handlers: it raises a signal again once it has stopped, and a wanted end is 0.

    Nor does it look ten times a second whether it is to end: that was a third of what an idle agent did.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        protocol: type[BoundedProtocol] = _Protocol,
        linger: int = LINGER,
        proxy_headers: bool = True,
    ) -> None:
        """`linger` is the seconds after which a connection that is still open is cut."""
        super().__init__(
            Config(
                app,
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=proxy_headers,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=linger,
            )
        )
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Have `serve` take no more connections and return; from the thread of its loop."""
        self.should_exit = True
        self._ended.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # as each tenth of uvicorn's, which sets the date
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), TICK)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def drain(idle: asyncio.Event, insisted: asyncio.Event, abort: Callable[[], Awaitable[None]]) -> None:
    """Wait until no call is open; those that are after `GRACE` seconds, or a second signal, are failed by `abort`."""
    log.info("draining", open_calls=not idle.is_set())
    waits = [asyncio.create_task(event.wait()) for event in (idle, insisted)]
    await asyncio.wait(waits, timeout=GRACE, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await abort()


def leave_in_time(seconds: float = END, clean: Callable[[], None] | None = None) -> None:
    """Have the process end within `seconds`, with exit code 0: it was told to stop. `clean` is called before that.

    For what no other bound reaches: a task that takes no cancellation, or a thread of the system that looks up a name,
    which is in no list. Called again, when there is less to wait for, the earlier end counts.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # it has ended
        loop = None
    timer = threading.Timer(seconds, _leave, [seconds, loop, clean])
    timer.daemon = True
    timer.start()


def _leave(seconds: float, loop: asyncio.AbstractEventLoop | None, clean: Callable[[], None] | None) -> None:
    tasks: set[str] = set()
    with contextlib.suppress(RuntimeError):  # one begins or ends meanwhile
        tasks = {getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks(loop)} if loop else set()
    threads = {thread.name for thread in threading.enumerate() if not thread.daemon} - {threading.main_thread().name}
    log.warning("left_behind", reason=f"not ended within {seconds:g} s", tasks=sorted(tasks), threads=sorted(threads))
    try:
        if clean:
            clean()
        sys.stdout.flush()
    finally:
        os._exit(0)


@asynccontextmanager
async def background(*jobs: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `jobs` beside the body; they are cancelled when it ends, and it fails when one of them does."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job) for job in jobs]
        yield
        for task in tasks:
            task.cancel()
