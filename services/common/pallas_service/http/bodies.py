"""Bodies that are read whole: how large one may be, how many values it may have, and how much is in memory at once."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from starlette.types import Message, Receive

SMALL = 64 << 10
"""Bytes of a body that is let in however many there are, so that images of some callers do not lock all others out."""
AT_ONCE = 4
"""Calls with as large a body as is allowed that are open at once."""


class OverBudget(Exception):
    """A body for which there is no room beside those of the calls that are open."""


class UploadAborted(Exception):
    """A caller that hung up before its body was complete."""


@dataclass(slots=True)
class Upload:
    """A body that was read whole, as the messages it came in, and what it was charged."""

    pieces: deque[Message] = field(default_factory=deque)
    charged: int = 0
    owner: str = ""


class BodyBudget:
    """The budget of all bodies together: `AT_ONCE` of the largest, those that are not `SMALL`.

    What is large takes from it for as long as its call is open, or until it is released. It takes as much as has come,
    not what a head promises: else a few heads and nothing more would lock everybody out.

    Where bodies have an owner, none of them holds more than is left for all others, but for one body of any size.
    """

    def __init__(self, limit: int, most_read: int, *, weight: int = 1) -> None:
        """`limit` is the most bytes that one body is charged for, `most_read` those after which it is read no more.

        Each byte is charged `weight` times: what is read whole, and then taken apart, is in memory more than once.
        """
        self._limit = limit
        self._weight = weight
        self._most_read = most_read
        self._held: Counter[str] = Counter()
        self.left = AT_ONCE * limit

    def admits(self, declared: int, owner: str = "") -> bool:
        """Return whether there is room for a body of which a head promises `declared` bytes."""
        return self._has_room(self._charge(declared), Upload(owner=owner))

    def read(self, receive: Receive, owner: str = "") -> Reading:
        """Return the context of one body, to its end or until it is beyond `most_read`.

        An empty `owner` shares with nobody.
        """
        return Reading(self, receive, owner)

    async def fill(self, upload: Upload, receive: Receive) -> None:
        """Read a body into `upload`.

        Raises:
            OverBudget: there is no room for what has come.
            UploadAborted: the caller hung up.
        """
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise UploadAborted
            upload.pieces.append(message)
            size += len(message.get("body", b""))
            more = self._charge(size) - upload.charged
            if not self._has_room(more, upload):
                raise OverBudget
            self._take(more, upload)
            if not message.get("more_body", False) or size > self._most_read:
                return

    def release(self, upload: Upload) -> None:
        """Give back what `upload` was charged: it is no longer in memory."""
        self._take(-upload.charged, upload)

    def _take(self, more: int, upload: Upload) -> None:
        if not more:
            return  # of small bodies, which most are, nothing is kept
        self.left -= more
        upload.charged += more
        if upload.owner:
            self._held[upload.owner] += more
            if not self._held[upload.owner]:
                del self._held[upload.owner]

    def _has_room(self, more: int, upload: Upload) -> bool:
        if not more:
            return True
        held = self._held[upload.owner] if upload.owner else 0
        is_only = held == upload.charged or not upload.owner
        return more <= self.left and (is_only or held + more <= self.left - more)

    def _charge(self, size: int) -> int:
        return self._weight * min(size, self._limit) if size > SMALL else 0


class Reading:
    """One body of a budget, read when the context begins and given back when it ends.

    Each request has one, and a generator would take longer than a small body.
    """

    __slots__ = ("_budget", "_receive", "_upload")

    def __init__(self, budget: BodyBudget, receive: Receive, owner: str) -> None:
        self._budget = budget
        self._receive = receive
        self._upload = Upload(owner=owner)

    async def __aenter__(self) -> Upload:
        """Return the body.

        Raises:
            OverBudget: there is no room for what has come.
            UploadAborted: the caller hung up.
        """
        try:
            await self._budget.fill(self._upload, self._receive)
        except BaseException:
            self._budget.release(self._upload)
            raise
        return self._upload

    async def __aexit__(self, *failure: object) -> None:
        self._budget.release(self._upload)
