"""Names to addresses through the system's resolver, without ever waiting for it at exit.

Neither asyncio's default executor nor uvloop's threads will do: a dead DNS server holds `getaddrinfo` for 10 s and
more, a handful of such names would block the look-up of all others, and the interpreter joins those threads at exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

LIMIT = 32
"""Most look-ups at once, each in a thread of its own."""

_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})

GetAddrInfo = Callable[..., list[Any]]


class NotFound(Exception):
    """A name that does not exist, says a DNS server that works."""


class Unresolved(Exception):
    """A look-up without an answer, or with one that does not say whether the name exists."""


class Resolver:
    """Look-ups of names, each to all its IPv4 and IPv6 addresses; a name has at most one look-up under way."""

    def __init__(self, *, getaddrinfo: GetAddrInfo = socket.getaddrinfo, limit: int = LIMIT) -> None:
        self._getaddrinfo = getaddrinfo
        self._slots = asyncio.Semaphore(limit)
        self._running: dict[str, asyncio.Task[frozenset[str]]] = {}

    async def __call__(self, host: str) -> frozenset[str]:
        """Return all addresses of `host`. A caller that gives up leaves the look-up running for the next one to join.

        Raises:
            NotFound: there is no such name.
            Unresolved: the resolver failed.
        """
        task = self._running.get(host)
        if task is None:
            task = self._running[host] = asyncio.create_task(self._look_up(host))
            task.add_done_callback(lambda done: self._forget(host, done))
        return await asyncio.shield(task)

    def _forget(self, host: str, done: asyncio.Task[frozenset[str]]) -> None:
        del self._running[host]
        if not done.cancelled():
            done.exception()  # marks it as retrieved: every caller may have given up

    async def _look_up(self, host: str) -> frozenset[str]:
        async with self._slots:
            try:
                entries = await _in_daemon_thread(lambda: self._getaddrinfo(host, None, type=socket.SOCK_STREAM))
            except socket.gaierror as error:
                kind = NotFound if error.errno in _NO_SUCH_NAME else Unresolved
                raise kind(error.strerror) from None
            except UnicodeError:  # an empty label, or one of more than 63 characters
                raise NotFound("no name that DNS could have") from None
            except OSError as error:
                raise Unresolved(error.strerror) from None
        return frozenset(entry[4][0] for entry in entries)


async def _in_daemon_thread(work: Callable[[], list[Any]]) -> list[Any]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[Any]] = loop.create_future()

    def settle(value: list[Any] | None, error: Exception | None) -> None:
        if future.done():  # cancelled meanwhile
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value or [])

    def run() -> None:
        value: list[Any] | None = None
        failure: Exception | None = None
        try:
            value = work()
        except Exception as error:  # handed over to who waits
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name="resolver", daemon=True).start()
    return await future
