"""What was said, kept outside the agent instances: by key, bounded in number, age, length and bytes.

A key is made of the conversation's handle and its caller: knowing a handle does not open another's conversation. Where
there is no more room, each verified caller is sure of a share (`SHARE`): above it who has most loses the oldest,
and where nobody is above it the oldest goes. Those whom nobody has verified share one share: names are free for them.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import json
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol
from weakref import WeakValueDictionary

LIMIT = 1000
"""Most conversations that are kept."""
IDLE = 1800.0
"""Seconds without a turn after which one is forgotten."""
SHARE = 10
"""A caller is sure of the tenth part of the conversations, and of the bytes."""
LARGEST = 48 << 20
"""Most bytes of one conversation, beyond its last turn, which is always kept."""
TOTAL = 96 << 20
"""Most bytes of all conversations of an agent, beyond the last one: an agent has 512 MiB by default."""


class Message(Protocol):
    """What this module needs to know of fast-agent's message."""

    @property
    def role(self) -> str: ...
    @property
    def tool_results(self) -> object: ...


type Weigh[M] = Callable[[M], int]
"""Bytes of a message, roughly: its texts and images."""
type Transcript[M] = dict[str, list[M]]
"""Messages by agent: a workflow keeps its history in its children."""


def key(handle: str, caller: str, verified: bool = False) -> str:
    """The key of a conversation. `caller` tells callers apart, empty for nobody; neither can be read back."""
    parts = (json.dumps(caller) if verified else "", json.dumps([caller, handle]))
    return "-".join(hashlib.sha256(part.encode()).hexdigest() for part in parts)


def whose(key: str) -> str:
    """What the keys of one verified caller have in common, and those of all others."""
    return key.partition("-")[0]


def surplus(kept: Iterable[tuple[str, int]], limit: int, total: int) -> list[str]:
    """Keys that have to go so that the others are at most `limit` and have at most `total` bytes together.

    `kept` is key and bytes, the least recently used first; the last one is in use and stays, whatever its size.
    """
    *others, last = kept
    many = _taken(others, [1] * len(others), last[0], 1, limit)
    others = [item for item in others if item[0] not in many]
    return [*many, *_taken(others, [weight for _, weight in others], *last, total)]


def _taken(
    others: Sequence[tuple[str, int]], weights: Sequence[int], last: str, used: int, room: int
) -> dict[str, None]:
    """What goes until all that is left and `used`, of `last`, fit: of those above their share the oldest of whoever has
    the most, again and again; then the oldest of all.
    """
    left, has, theirs = used + sum(weights), Counter({whose(last): used}), dict[str, deque[int]]()
    for place, (key, _) in enumerate(others):
        has[whose(key)] += weights[place]
        theirs.setdefault(whose(key), deque()).append(place)
    most = [(-has[caller], places.popleft(), caller) for caller, places in theirs.items()]
    heapq.heapify(most)
    taken: dict[str, None] = {}
    while left > room and most and -most[0][0] > room // SHARE:
        _, place, caller = heapq.heappop(most)
        taken[others[place][0]] = None
        left -= weights[place]
        has[caller] -= weights[place]
        if theirs[caller]:
            heapq.heappush(most, (-has[caller], theirs[caller].popleft(), caller))
    for (key, _), weight in zip(others, weights, strict=True):
        if left > room and key not in taken:
            taken[key] = None
            left -= weight
    return taken


class Store[M](Protocol):
    """Where transcripts live between two turns."""

    async def load(self, key: str) -> Transcript[M]:
        """The transcript of `key`, empty when there is none."""
        ...

    async def save(self, key: str, transcript: Transcript[M]) -> None: ...

    @property
    def problem(self) -> str:
        """Why transcripts are not kept at present; empty when they are."""
        ...

    async def watch(self) -> None:
        """Look again and again whether a problem is still there, until cancelled."""
        ...


class MemoryStore[M]:
    """Transcripts of this process.

    Nothing on the wire ends a conversation in the stateless era, so they also age out: `idle` is in seconds.
    """

    def __init__(
        self,
        weigh: Weigh[M],
        limit: int = LIMIT,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
        total: int = TOTAL,
    ) -> None:
        self._weigh, self._limit, self._idle, self._clock, self._total = weigh, limit, idle, clock, total
        self._kept: OrderedDict[str, tuple[float, Transcript[M], int]] = OrderedDict()
        self.problem = ""
        self._bytes = 0

    async def load(self, key: str) -> Transcript[M]:
        self._forget()
        return {agent: list(said) for agent, said in self._kept[key][1].items()} if key in self._kept else {}

    async def save(self, key: str, transcript: Transcript[M]) -> None:
        self._drop(key)
        weight = sum(self._weigh(message) for said in transcript.values() for message in said)
        self._kept[key] = (self._clock(), transcript, weight)
        self._bytes += weight
        self._forget()
        if len(self._kept) > self._limit or self._bytes > self._total:
            listed = [(known, weight) for known, (_, _, weight) in self._kept.items()]
            for known in surplus(listed, self._limit, self._total):
                self._drop(known)

    async def watch(self) -> None:
        """Return at once: memory has no problem that goes away."""

    def _forget(self) -> None:
        """Let go of what nobody has gone on with."""
        while self._kept:
            oldest, (used, _, _) = next(iter(self._kept.items()))
            if self._clock() - used <= self._idle:
                return
            self._drop(oldest)

    def _drop(self, key: str) -> None:
        if key in self._kept:
            self._bytes -= self._kept.pop(key)[2]


class Conversations[M: Message]:
    """Turns of one conversation happen one after the other; those of different ones side by side.

    `length` is the most messages kept per agent: fast-agent copies the whole history on every turn, 0.15 ms a message;
    `largest` is the most bytes.
    """

    def __init__(self, store: Store[M], weigh: Weigh[M], length: int = 400, largest: int = LARGEST) -> None:
        self._store, self._weigh, self._length, self._largest = store, weigh, length, largest
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, key: str | None) -> AsyncIterator[Transcript[M]]:
        """The transcript, to be changed in place; saved when the turn ends without an exception. None keeps nothing."""
        if key is None:
            yield {}
            return
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            transcript = await self._store.load(key)
            yield transcript
            await self._store.save(key, {agent: self._bounded(said) for agent, said in transcript.items() if said})

    async def read(self, key: str, agent: str) -> list[M]:
        """What `agent` and its callers said so far."""
        return list((await self._store.load(key)).get(agent, []))

    def _bounded(self, messages: list[M]) -> list[M]:
        """The last whole turns, at least one: a tool's result without its call confuses every provider."""
        start, left = len(messages), self._largest
        while start > max(0, len(messages) - self._length) and (left := left - self._weigh(messages[start - 1])) >= 0:
            start -= 1
        turns = [i for i, said in enumerate(messages) if said.role == "user" and not said.tool_results]
        fitting = [i for i in turns if i >= start]
        return messages[(fitting[:1] or turns[-1:] or [start])[0] :] if start else messages
