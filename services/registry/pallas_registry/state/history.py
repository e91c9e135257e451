"""The last changes of state, numbered: what the log said, readable again, and what the event stream is made of."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pallas_contract.documents.health import State, timestamp
from pallas_contract.documents.reason import Reason

MemberKind = Literal["agent", "service"]
KEEP = 1000
"""Changes kept in memory; about 300 bytes each."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of state, as it is logged, counted, streamed and shown; `agent` is a service where `kind` says so."""

    agent: str
    old: State
    new: State
    reason: Reason
    at: datetime
    kind: MemberKind = "agent"

    def as_dict(self) -> dict[str, str]:
        event = {"time": timestamp(self.at), self.kind: self.agent, "old": self.old, "new": self.new}
        return event | {"reason": self.reason.message, "code": self.reason.code}


@dataclass(frozen=True, slots=True)
class News:
    """What happened after a certain number: `changes` as (number, change), oldest first; `number` is the newest's.

    `missed` is true when some of them are no longer kept; `closed` when there will be no more. `rings` tells `wait`
    what its caller has already seen.
    """

    changes: tuple[tuple[int, Change], ...]
    number: int
    rings: int
    missed: bool
    closed: bool


class History:
    """A bounded list of changes that any number of readers follow, each at its own pace.

    Readers ask for what came after the last number they have seen, so a slow one holds up nobody and fills no queue.
    Not thread-safe: everything happens on the event loop.
    """

    def __init__(self, *, keep: int = KEEP) -> None:
        self._kept: deque[tuple[int, Change]] = deque(maxlen=keep)
        self._number, self._rings, self._closed = 0, 0, False
        self._bell = asyncio.Event()

    @property
    def number(self) -> int:
        """That of the newest change; 0 before the first."""
        return self._number

    @property
    def rings(self) -> int:
        """Grows with whatever the readers are woken for."""
        return self._rings

    def record(self, change: Change) -> None:
        self._number += 1
        self._kept.append((self._number, change))
        self.ring()

    def last(self, count: int) -> list[Change]:
        """Up to `count` changes, newest first."""
        return [change for _, change in list(self._kept)[: -count - 1 : -1]]

    def after(self, number: int) -> News:
        """Return what came after `number`; a number of another run, too high for this one, is as good as 0."""
        seen = number if number <= self._number else 0
        oldest = self._kept[0][0] if self._kept else self._number + 1
        behind = self._number - max(seen, oldest - 1)
        changes = tuple(list(self._kept)[len(self._kept) - behind :])
        return News(changes, number=self._number, rings=self._rings, missed=seen < oldest - 1, closed=self._closed)

    def ring(self) -> None:
        """Wake all who wait: there is a change, or something else they show is different now."""
        self._rings += 1
        self._bell.set()
        self._bell = asyncio.Event()

    async def wait(self, rings: int) -> None:
        """Return when there have been more than `rings` (`News.rings`), be it already."""
        if self._rings == rings:
            await self._bell.wait()

    def close(self) -> None:
        """Tell the readers that the registry stops."""
        self._closed = True
        self.ring()
