"""A pool of warm instances of anything: bounded, made on first use, thrown away after any failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

log = structlog.get_logger(__name__)


class Instances[T]:
    """At most `limit` at once; the most recently used is taken first, so that a quiet agent holds few.

    `make` creates one, `clean` readies a used one for the next caller and says whether to keep it, `discard` ends one.
    """

    def __init__(
        self,
        make: Callable[[], Awaitable[T]],
        clean: Callable[[T], Awaitable[bool]],
        discard: Callable[[T], Awaitable[None]],
        limit: int,
        *,
        patience: float = 5.0,
    ) -> None:
        """`patience` is how long the end of an instance keeps its place, in seconds."""
        self._make = make
        self._clean = clean
        self._discard = discard
        self._patience = patience
        self.endings: set[asyncio.Task[None]] = set()
        """Ends of instances that are under way."""
        self._slots: asyncio.LifoQueue[T | None] = asyncio.LifoQueue()
        for _ in range(limit):
            self._slots.put_nowait(None)
        self.failure: Exception | None = None
        """Why the last attempt to make an instance failed; None when it worked."""

    @asynccontextmanager
    async def one(self) -> AsyncIterator[T]:
        """Borrow an instance, waiting for a free slot. One that saw an exception is never lent again."""
        instance = await self._slots.get()
        keep = False
        try:
            if instance is None:
                instance = await self._new()
            yield instance
            keep = await self._clean(instance)
        finally:
            try:
                if instance is not None and not keep:
                    await self._end(instance)
            finally:
                # Also when the end of the instance fails: a slot that is lost is lost until a restart.
                self._slots.put_nowait(instance if keep else None)

    def end(self) -> None:
        """Begin the end of all instances that are not lent."""
        free = [self._slots.get_nowait() for _ in range(self._slots.qsize())]
        for instance in free:
            self._slots.put_nowait(None)
            if instance is not None:
                self._begin_end(instance)

    async def _end(self, instance: T) -> None:
        """Discard an instance, whatever cancels the borrower meanwhile; nobody waits longer than `patience`.

        fast-agent takes a cancellation back, writes down what it has, and cancels its task anew: that one would end the
        first thing that is waited for here, and what the instance holds would stay. Nor is an end cancelled that takes
        too long: fast-agent ends one agent after the other, and would not come to the rest.
        """
        ending = self._begin_end(instance)
        deadline = asyncio.get_running_loop().time() + self._patience
        cancelled = False
        while not ending.done() and (seconds := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.wait([ending], timeout=seconds)
            except asyncio.CancelledError:
                cancelled = True
        if ending.done():
            ending.result()
        else:
            log.warning("instance_not_closed", error=TimeoutError.__name__)
        if cancelled:
            raise asyncio.CancelledError

    def _begin_end(self, instance: T) -> asyncio.Task[None]:
        ending = asyncio.create_task(self._ended(instance))
        self.endings.add(ending)
        ending.add_done_callback(self.endings.discard)
        return ending

    async def _ended(self, instance: T) -> None:
        await self._discard(instance)

    async def _new(self) -> T:
        try:
            made = await self._make()
        except Exception as error:
            self.failure = error
            raise
        self.failure = None
        return made
