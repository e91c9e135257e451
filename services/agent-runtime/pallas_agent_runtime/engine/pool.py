"""A pool of warm instances of anything: bounded, made on first use, thrown away after any failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager


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
    ) -> None:
        self._make = make
        self._clean = clean
        self._discard = discard
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

    async def _end(self, instance: T) -> None:
        """Discard an instance, whatever cancels the borrower meanwhile.

        fast-agent takes a cancellation back, writes down what it has, and cancels its task anew: that one would end the
        first thing that is waited for here, and what the instance holds would stay.
        """
        ending = asyncio.create_task(self._ended(instance))
        cancelled = False
        while not ending.done():
            try:
                await asyncio.wait([ending])
            except asyncio.CancelledError:
                cancelled = True
        ending.result()
        if cancelled:
            raise asyncio.CancelledError

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
