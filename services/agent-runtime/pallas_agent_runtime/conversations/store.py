"""Conversations, kept outside the agent instances: by key, bounded in number, age, length and bytes.

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
    """The part of fast-agent's message that this module needs."""

    @property
    def role(self) -> str: ...
    @property
    def tool_results(self) -> object: ...


type Weigh[M] = Callable[[M], int]
"""Bytes of a message, roughly: its texts and images."""
type Transcript[M] = dict[str, list[M]]
"""Messages by agent: a workflow keeps its history in its children."""


def key(handle: str, caller: str, verified: bool = False) -> str:
    """Return the key of a conversation. `caller` tells callers apart, empty for nobody; neither can be read back."""
    parts = (json.dumps(caller) if verified else "", json.dumps([caller, handle]))
    return "-".join(hashlib.sha256(part.encode()).hexdigest() for part in parts)


def owner(key: str) -> str:
    """Return what the keys of one verified caller have in common; it is empty for all others' together."""
    return key.partition("-")[0]


def surplus(entries: Iterable[tuple[str, int]], limit: int, total: int) -> list[str]:
    """Return the keys that have to go so that the others are at most `limit` and have at most `total` bytes together.

    `entries` are key and bytes, the least recently used first; the last one is in use and stays, whatever its size.
    """
    *others, (last, size) = entries
    by_number = _evicted(others, [1] * len(others), last=last, used=1, room=limit)
    others = [entry for entry in others if entry[0] not in by_number]
    weights = [weight for _, weight in others]
    return [*by_number, *_evicted(others, weights, last=last, used=size, room=total)]


def _evicted(
    others: Sequence[tuple[str, int]], weights: Sequence[int], *, last: str, used: int, room: int
) -> dict[str, None]:
    """Return the keys that go until the rest of `others` and `used`, of `last`, fit into `room`.

    Of those above their share the oldest of whoever has the most, again and again; then the oldest of all.
    """
    total = used + sum(weights)
    usage = Counter({owner(last): used})
    queues: dict[str, deque[int]] = {}
    for index, (key, _) in enumerate(others):
        usage[owner(key)] += weights[index]
        queues.setdefault(owner(key), deque()).append(index)
    # one entry for each caller: a scan of all of them for every key that goes would be quadratic
    heap = [(-usage[caller], queue.popleft(), caller) for caller, queue in queues.items()]
    heapq.heapify(heap)
    evicted: dict[str, None] = {}
    while total > room and heap and -heap[0][0] > room // SHARE:
        _, index, caller = heapq.heappop(heap)
        evicted[others[index][0]] = None
        total -= weights[index]
        usage[caller] -= weights[index]
        if queues[caller]:
            heapq.heappush(heap, (-usage[caller], queues[caller].popleft(), caller))
    for (key, _), weight in zip(others, weights, strict=True):
        if total > room and key not in evicted:
            evicted[key] = None
            total -= weight
    return evicted


class Store[M](Protocol):
    """The home of transcripts between two turns."""

    async def load(self, key: str) -> Transcript[M]:
        """Return the transcript of `key`, empty when there is none."""
        ...

    async def save(self, key: str, transcript: Transcript[M]) -> None: ...

    @property
    def problem(self) -> str:
        """The reason why transcripts are not kept at present; empty when they are."""
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
        *,
        limit: int = LIMIT,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
        total: int = TOTAL,
    ) -> None:
        self._weigh = weigh
        self._limit = limit
        self._idle = idle
        self._clock = clock
        self._total = total
        self._transcripts: OrderedDict[str, tuple[float, Transcript[M], int]] = OrderedDict()
        self.problem = ""
        self._bytes = 0

    async def load(self, key: str) -> Transcript[M]:
        self._forget()
        return (
            {agent: list(messages) for agent, messages in self._transcripts[key][1].items()}
            if key in self._transcripts
            else {}
        )

    async def save(self, key: str, transcript: Transcript[M]) -> None:
        self._drop(key)
        weight = sum(self._weigh(message) for messages in transcript.values() for message in messages)
        self._transcripts[key] = (self._clock(), transcript, weight)
        self._bytes += weight
        self._forget()
        if len(self._transcripts) > self._limit or self._bytes > self._total:
            entries = [(other, weight) for other, (_, _, weight) in self._transcripts.items()]
            for other in surplus(entries, self._limit, self._total):
                self._drop(other)

    async def watch(self) -> None:
        """Return at once: memory has no problem that goes away."""

    def _forget(self) -> None:
        """Let go of what nobody has gone on with."""
        while self._transcripts:
            oldest, (used, _, _) = next(iter(self._transcripts.items()))
            if self._clock() - used <= self._idle:
                return
            self._drop(oldest)

    def _drop(self, key: str) -> None:
        if key in self._transcripts:
            self._bytes -= self._transcripts.pop(key)[2]


class Conversations[M: Message]:
    """Turns of one conversation happen one after the other; those of different ones side by side.

    `length` is the most messages kept per agent: fast-agent copies the whole history on every turn, 0.15 ms a message;
    `largest` is the most bytes.
    """

    def __init__(self, store: Store[M], weigh: Weigh[M], length: int = 400, largest: int = LARGEST) -> None:
        self._store = store
        self._weigh = weigh
        self._length = length
        self._largest = largest
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, key: str | None) -> AsyncIterator[Transcript[M]]:
        """Yield the transcript, to be changed in place; saved when the turn ends without an exception.

        Nothing is saved where `key` is None.
        """
        if key is None:
            yield {}
            return
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            transcript = await self._store.load(key)
            yield transcript
            bounded = {agent: self._bounded(messages) for agent, messages in transcript.items() if messages}
            await self._store.save(key, bounded)

    async def read(self, key: str, agent: str) -> list[M]:
        """Return what `agent` and its callers said so far."""
        return list((await self._store.load(key)).get(agent, []))

    def _bounded(self, messages: list[M]) -> list[M]:
        """Return the last whole turns, at least one: a tool's result without its call confuses every provider."""
        start = len(messages)
        room = self._largest
        while start > max(0, len(messages) - self._length) and (room := room - self._weigh(messages[start - 1])) >= 0:
            start -= 1
        # what tools answered has the role `user` as well, and begins no turn
        turns = [i for i, message in enumerate(messages) if message.role == "user" and not message.tool_results]
        fitting = [i for i in turns if i >= start]
        return messages[(fitting[:1] or turns[-1:] or [start])[0] :] if start else messages
