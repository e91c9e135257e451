"""Timers that run: who fires them, who waits for one, and the webhook that is told.

They go by the clock on the wall, which is looked at each second. One that jumps over timers fires them once, late; one
that is put back fires none again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx2

from home_tools.clock import Clock
from home_tools.problems import NotThere, Problem
from home_tools.timers.store import Store, Timer

_LOOK = 1.0
"""Seconds after which the clock is looked at again, whatever it said before."""
_LONGEST_PAUSE = 60.0
_LATE = 24 * 3600.0
"""Seconds after which nobody is told any more."""


class Timers:
    """The timers of a file."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self._changed = asyncio.Event()
        self._fired = asyncio.Condition()

    def changed(self) -> None:
        """Say that there is a timer more: it may be the next one."""
        self._changed.set()

    async def run(self) -> None:
        """Fire what is due, until it is cancelled. A disk that is full stops it no longer than it lasts."""
        while True:
            pause = _LOOK
            self._changed.clear()
            try:
                if await asyncio.to_thread(self.store.fire, self.clock.now()):
                    async with self._fired:
                        self._fired.notify_all()
                due = await asyncio.to_thread(self.store.next_due)
                pause = _LOOK if due is None else min(_LOOK, max(0.0, due - self.clock.now()))
            except (Problem, sqlite3.Error) as error:
                print(f"timers: {error}", file=sys.stderr, flush=True)
            await self.clock.wait(pause, self._changed)

    async def fired(self) -> AsyncIterator[None]:
        """Yield at once, and then whenever timers fire or a second of the machine has passed."""
        while True:
            yield
            async with self._fired:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._fired.wait(), _LOOK)

    async def find(self, number: int) -> Timer:
        """Return a timer.

        Raises:
            NotThere: there is none.
        """
        for timer in await asyncio.to_thread(self.store.all):
            if timer.id == number:
                return timer
        raise NotThere(f"there is no timer {number}: it was cancelled, or never set")


class Webhook:
    """Tells a URL of each timer that has fired: at least once, in their order, also after a restart."""

    def __init__(self, url: str, token: str, timers: Timers, client: httpx2.AsyncClient) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timers = timers
        self._client = client

    async def run(self) -> None:
        """Tell, until it is cancelled; who does not answer is asked again after 1, 2, 4 ... 60 s."""
        pause = _LOOK
        async for _ in self._timers.fired():
            for timer in await asyncio.to_thread(self._timers.store.untold, self._timers.clock.now() - _LATE):
                if not await self._told(timer):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    break
                pause = _LOOK

    async def _told(self, timer: Timer) -> bool:
        try:
            reply = await self._client.post(self._url, json=as_json(timer), headers=self._headers)
            if reply.is_success:
                await asyncio.to_thread(self._timers.store.told, timer.id, self._timers.clock.now())
                return True
            print(f"timers: the webhook answers HTTP {reply.status_code}", file=sys.stderr, flush=True)
        except (httpx2.HTTPError, Problem) as error:
            print(f"timers: the webhook: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return False


def as_json(timer: Timer) -> dict[str, object]:
    """Return what the webhook is sent: `id` is the same whenever it is told again."""
    assert timer.fired is not None
    moments = {
        key: datetime.fromtimestamp(at, UTC).isoformat() for key, at in (("due", timer.due), ("fired", timer.fired))
    }
    return {"id": timer.id, "kind": timer.kind, "label": timer.label, **moments}
