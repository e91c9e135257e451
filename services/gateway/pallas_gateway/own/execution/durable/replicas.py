"""One of several gateways with the same journal: keep what it runs, follow what others run, and stand in for them.

The journal is asked at a pace, by one query for all graphs of a gateway. PostgreSQL could tell of changes (LISTEN), but
not through a pooler that gives each transaction another connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from pallas_gateway.own.execution.durable.journal import Seen, Shared
from pallas_gateway.own.execution.durable.live import Live
from pallas_gateway.own.execution.run import Sleep
from pallas_gateway.own.failures import Failed
from pallas_service.sqlite_file import CannotStore

log = structlog.get_logger(__name__)


class Replicas:
    """What is done all along for the graphs in `live`, by id. Nothing of it is claimed while `claiming` is held."""

    def __init__(
        self, journal: Shared, live: dict[str, Live], claiming: asyncio.Lock, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._journal = journal
        self._sleep = sleep
        self._was_away = False
        self._live = live
        self._claiming = claiming
        self._telling: set[asyncio.Task[None]] = set()

    def jobs(self, resume: Callable[[], Awaitable[None]]) -> list[Coroutine[Any, Any, None]]:
        """Return what has to run as long as the gateway does; `resume` goes on with what nobody runs."""
        pace = self._journal.pace
        return [
            self._every(pace.renew, self.renew, when_away=pace.follow),  # its leases may be over when the store is back
            self._every(pace.follow, self.follow),
            self._every(pace.resume, lambda: self.resume(resume)),
        ]

    async def resume(self, work: Callable[[], Awaitable[None]]) -> None:
        """Go on with what nobody runs; after an outage once all who are alive have had time to renew what they run."""
        if self._was_away:
            await self.renew()
            self._was_away = False
            await self._sleep(self._journal.pace.renew)
        try:
            await work()
        except CannotStore:
            self._was_away = True
            raise

    async def renew(self) -> None:
        """Keep the graphs that are run here, and run no more those that another replica goes on with."""
        async with self._claiming:
            runs = {id_: live.run for id_, live in self._live.items() if live.run is not None}
            lost = await self._journal.renew(runs)
        for id_ in lost:
            live = self._live.get(id_)
            if live is not None and live.run == runs[id_]:
                log.warning("another replica goes on with a graph", graph=id_)
                live.lose()

    async def follow(self) -> None:
        """Tell who waits here what has become of graphs that other replicas run."""
        elsewhere = {id_: live for id_, live in self._live.items() if live.run is None}
        for id_ in [id_ for id_, live in elsewhere.items() if not live.callers]:
            del self._live[id_], elsewhere[id_]
        if not elsewhere:
            return
        try:
            seen = await self._journal.seen(elsewhere, [id_ for id_, live in elsewhere.items() if live.is_watched])
        except CannotStore:
            failure = Failed("not_stored", "the gateway cannot ask what becomes of this graph")
            for id_, live in self._others(elsewhere):
                self._end(id_, live.fail, failure)
            raise
        for id_, live in self._others(elsewhere):
            self._told(id_, live, seen.get(id_))

    async def _every(
        self, seconds: float, work: Callable[[], Awaitable[None]], *, when_away: float | None = None
    ) -> None:
        while True:
            pause = seconds
            try:
                await work()
            except CannotStore:  # the store says it, and /healthz
                pause = seconds if when_away is None else min(seconds, when_away)
            except Exception:
                log.exception("durable graphs cannot be looked after")
            await self._sleep(pause)

    def _others(self, elsewhere: dict[str, Live]) -> list[tuple[str, Live]]:
        """Return those that are still run elsewhere: the journal was asked meanwhile."""
        return [(id_, live) for id_, live in elsewhere.items() if live.run is None and self._live.get(id_) is live]

    def _told(self, id_: str, live: Live, seen: Seen | None) -> None:
        if seen is None:
            self._end(id_, live.fail, Failed("failed", "the answer of this graph is kept no longer"))
        elif seen.answer is not None:
            self._end(id_, live.succeed, seen.answer)
        elif live.is_watched:
            # beside: a caller that does not read holds up no other
            telling = asyncio.create_task(live.tell(seen.statuses))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def _end[T](self, id_: str, tell: Callable[[T], None], about: T) -> None:
        tell(about)
        del self._live[id_]
