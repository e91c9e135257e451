"""`/events`: the changes of state as server-sent events, resumable, for the status page and for whoever listens.

Events are `change` of an agent and `service` of a service (with an id; data as in the log), and
`update` (something else that the page shows is different).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator

from pallas_registry.state.history import History, MemberKind, News
from pallas_service.http.connections import most_connections

PATH = "/events"
KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection."""
_EVENTS: dict[MemberKind, str] = {"agent": "change", "service": "service"}
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no", "access-control-allow-origin": "*"}
LIMIT = 512
"""Most streams at once. One address has at most as many as it leaves to all others: half of them where it is alone, as
a proxy is for everybody behind it, a third beside another one."""


def affordable() -> int:
    """Return `LIMIT`, or half of the connections: streams stay open, and the others are for whoever asks."""
    return max(1, min(LIMIT, most_connections() // 2))


class Streams:
    """The streams that are open, counted; `run` is in every id, so that those of an earlier process are recognised."""

    def __init__(self, history: History, *, run: str, keep_alive: float = KEEP_ALIVE, limit: int = LIMIT) -> None:
        self._history = history
        self._run = run
        self._keep_alive = keep_alive
        self._limit = limit
        self._addresses: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Streams that are open."""
        return self._addresses.total()

    def admits(self, address: str) -> bool:
        """Return True while one more stream to `address` leaves at least as many free as it then has."""
        return self._addresses[address] < self._limit - self.open

    async def follow(self, last_id: str, address: str = "") -> AsyncIterator[bytes]:
        """Yield the events after the one with `last_id` (the Last-Event-ID header); from now on when it is empty."""
        self._addresses[address] += 1
        try:
            last = self._last(last_id) if last_id else self._history.number
            # the first bytes at once: some proxies hold back the headers until there is a body; with the id a listener
            # that is cut off before the first change resumes where it began (HTML standard, section 9.2.6: no event)
            yield f"id: {self._run}-{last}\nretry: 2000\n\n".encode()
            while True:
                news = self._history.after(last)
                for chunk in self._events(news):
                    yield chunk
                if news.closed:
                    return
                last = news.number
                if not await self._woken(news.rings):
                    yield b": still here\n\n"
                elif self._history.number == last:
                    yield b"event: update\ndata: {}\n\n"
        finally:
            self._addresses[address] -= 1
            self._addresses += Counter()  # forgets those that have none

    def _last(self, last_id: str) -> int:
        run, _, number = last_id.rpartition("-")
        # an id of an earlier process counts changes that this one does not know: from the start, then
        return int(number) if run == self._run and number.isascii() and number.isdigit() else 0

    def _events(self, news: News) -> list[bytes]:
        missed = [b'event: missed\ndata: {"message":"older changes are no longer kept"}\n\n'] if news.missed else []
        return missed + [
            f"id: {self._run}-{number}\nevent: {_EVENTS[change.kind]}\ndata: {_json(change.as_dict())}\n\n".encode()
            for number, change in news.changes
        ]

    async def _woken(self, rings: int) -> bool:
        try:
            async with asyncio.timeout(self._keep_alive):
                await self._history.wait(rings)
        except TimeoutError:
            return False
        return True


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
