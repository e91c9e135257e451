"""The uptime of each agent over the last hour and the last day, in memory of a fixed size.

Time is counted in buckets: minutes for the hour, quarters of an hour for the day. A bucket has the seconds in which the
agent was well, up but not well, and down; seconds in which nobody knew, or it was still starting, are in none.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pallas_contract.documents.health import State

HOUR = 3600
DAY = 86400
"""Seconds of the two windows. The bucket that is being filled counts, so each is short of it by up to a bucket."""
KINDS = ("well", "reduced", "down")
"""The kinds of time that are counted, in the order in which a bucket has them; the first two are up."""
_KIND_OF: dict[State, int] = {"ok": 0, "degraded": 1, "unauthenticated": 1, "error": 2}
_TENTHS = 10
"""Times are whole tenths of a second: nothing is lost by rounding, however often a state changes."""

_HEAD = struct.Struct("<qqb")
"""Of a record: tenths of a second since the epoch up to which it counts and since when it is of its kind, and that kind
(-1 for none). After it come the cells of both rings, compressed, where there are some."""

Seconds = tuple[float, float, float]
"""Of each of `KINDS`."""


@dataclass(frozen=True, slots=True)
class Window:
    """Seconds of a window in which an agent was up, and those of which anything is known."""

    up: float
    known: float

    @property
    def share(self) -> float | None:
        """The part of the known time in which it was up, 0 to 1; None where nothing is known."""
        return self.up / self.known if self.known else None


@dataclass(frozen=True, slots=True)
class AgentUptime:
    """The last hour and the last day of an agent."""

    hour: Window
    day: Window


NOTHING = AgentUptime(Window(0, 0), Window(0, 0))


class _Ring:
    """Tenths of a second of each kind in `count` buckets of `width` tenths, by the number of a bucket since the epoch.

    Each bucket is used again when its turn comes round.
    """

    __slots__ = ("cells", "count", "last", "totals", "width")

    def __init__(self, width: int, count: int) -> None:
        self.width = width
        self.count = count
        self.cells = array("H", bytes(2 * len(KINDS) * count))
        self.totals = array("L", bytes(8 * len(KINDS)))
        """Over all buckets, so that a window is read without a look at each."""
        self.last = 0

    def add(self, kind: int | None, start: int, end: int) -> None:
        """Count the time from `start` to `end` as of `kind`; each call begins where the one before ended."""
        newest = end // self.width
        for bucket in range(max(start // self.width, newest - self.count + 1), newest + 1):
            cell = bucket % self.count * len(KINDS)
            if bucket > self.last:
                self._clear(cell)
            if kind is not None:
                begin = bucket * self.width
                tenths = min(end, begin + self.width) - max(start, begin)
                self.cells[cell + kind] += tenths
                self.totals[kind] += tenths
        self.last = max(self.last, newest)

    def fill(self, data: bytes, last: int) -> None:
        """Take over cells as `bytes` gives them, up to the bucket `last`. Raises ValueError when they make no sense."""
        cells = array("H", data)
        if sys.byteorder == "big":
            cells.byteswap()
        sums = [sum(cells[at : at + len(KINDS)]) for at in range(0, len(cells), len(KINDS))]
        if len(cells) != len(self.cells) or max(sums) > self.width:
            raise ValueError("no buckets of this size")
        self.cells = cells
        self.totals = array("L", [sum(cells[kind :: len(KINDS)]) for kind in range(len(KINDS))])
        self.last = last

    def bytes(self) -> bytes:
        cells = array("H", self.cells)
        if sys.byteorder == "big":
            cells.byteswap()
        return cells.tobytes()

    def _clear(self, cell: int) -> None:
        for kind in range(len(KINDS)):
            self.totals[kind] -= self.cells[cell + kind]
            self.cells[cell + kind] = 0

    def window(self) -> Window:
        well, reduced, down = (tenths / _TENTHS for tenths in self.totals)
        return Window(well + reduced, well + reduced + down)

    def buckets(self) -> list[Seconds]:
        """Return the seconds of each bucket, the oldest first."""
        numbers = (bucket % self.count * len(KINDS) for bucket in range(self.last - self.count + 1, self.last + 1))
        return [
            (self.cells[at] / _TENTHS, self.cells[at + 1] / _TENTHS, self.cells[at + 2] / _TENTHS) for at in numbers
        ]


class _Track:
    """The time of one agent. One that has been in one state all the time has no rings: there is nothing to tell."""

    __slots__ = ("counted", "kind", "rings", "since")

    def __init__(self, now: int) -> None:
        self.kind: int | None = None
        self.since = now
        """When it came into this kind of time."""
        self.counted = now
        """Up to when the rings have all."""
        self.rings: tuple[_Ring, _Ring] | None = None

    def change(self, kind: int | None, now: int) -> None:
        if kind == self.kind:
            return
        if self.kind is not None or self.rings:
            self.rings = self.count(now)
        self.kind = kind
        self.since = now
        self.counted = now

    def count(self, now: int) -> tuple[_Ring, _Ring]:
        """Return rings that have all up to `now`, the agent's own where it has some."""
        rings = self.rings or _rings()
        for ring in rings:
            ring.add(self.kind, self.counted if self.rings else self.since, now)
        if self.rings:
            self.counted = now
            if now - self.since > (DAY + HOUR) * _TENTHS:
                self.rings = None
        return rings

    def record(self, now: int) -> bytes:
        """Return all of it up to now; `restored` reads it."""
        rings = self.count(now) if self.rings else ()
        cells = b"".join(ring.bytes() for ring in rings)
        head = _HEAD.pack(now, self.since, -1 if self.kind is None else self.kind)
        return head + (zlib.compress(cells) if cells else b"")

    def uptime(self, now: int) -> AgentUptime:
        if self.rings:
            hour, day = (ring.window() for ring in self.count(now))
            return AgentUptime(hour, day)
        if self.kind is None:
            return NOTHING
        hour, day = (self._whole(min(now - self.since, seconds * _TENTHS) / _TENTHS) for seconds in (HOUR, DAY))
        return AgentUptime(hour, day)

    def _whole(self, known: float) -> Window:
        return Window(0.0 if KINDS[self.kind or 0] == "down" else known, known)


def _restored(record: bytes, now: int) -> _Track:
    """Return the track of a record of an earlier process; of the time since then nothing is known.

    Raises:
        ValueError, struct.error, zlib.error: it is none, or from a time that has not come yet.
    """
    until, since, kind = _HEAD.unpack_from(record)
    if not since <= until <= now or kind not in (-1, *range(len(KINDS))):
        raise ValueError("not of the past")
    track = _Track(since)
    if cells := record[_HEAD.size :]:
        rings = _rings()
        # one byte more than there may be: then it is refused
        data = zlib.decompressobj().decompress(cells, _MOST_CELLS + 1)
        for ring, part in zip(rings, (data[:_MINUTES], data[_MINUTES:]), strict=True):
            ring.fill(part, until // ring.width)
        track.rings = rings
        track.counted = until
        track.since = until
    elif kind >= 0:
        track.change(kind, since)
        track.change(None, until)
    return track


def _rings() -> tuple[_Ring, _Ring]:
    """Return empty rings of an hour and of a day."""
    return _Ring(60 * _TENTHS, HOUR // 60), _Ring(900 * _TENTHS, DAY // 900)


_MINUTES = 2 * len(KINDS) * (HOUR // 60)
_MOST_CELLS = _MINUTES + 2 * len(KINDS) * (DAY // 900)
"""Bytes of the cells of an hour, and of both rings."""


class Uptime:
    """The uptime of all agents; `clock` is seconds since the epoch that never go back.

    An agent that stays in one state costs 0.2 kB, one that changed within a day 1.9 kB, whatever else it does.
    Not thread-safe: everything happens on the event loop.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tracks: dict[str, _Track] = {}

    def record(self, agent: str, state: State) -> None:
        """Take over that `agent` is in `state` from now on."""
        now = self._now()
        self._tracks.setdefault(agent, _Track(now)).change(_KIND_OF.get(state), now)

    def retain(self, agents: Collection[str]) -> None:
        """Forget all agents but these."""
        for agent in self._tracks.keys() - set(agents):
            del self._tracks[agent]

    def of(self, agent: str) -> AgentUptime:
        """Return the uptime of `agent`; nothing is known of one that was never recorded."""
        track = self._tracks.get(agent)
        return track.uptime(self._now()) if track else NOTHING

    def buckets(self, agent: str) -> tuple[list[Seconds], list[Seconds]]:
        """Return the minutes of the last hour and the quarters of the last day, the oldest first."""
        track = self._tracks.get(agent) or _Track(self._now())
        minutes, quarters = (ring.buckets() for ring in track.count(self._now()))
        return minutes, quarters

    def document(self) -> dict[str, object]:
        """Return `{"agents": {name: {"hour": {"up", "known"}, "day": {...}}}}` in seconds, by name."""
        uptimes = {agent: self.of(agent) for agent in sorted(self._tracks)}
        return {
            "agents": {
                agent: {"hour": _window(uptime.hour), "day": _window(uptime.day)} for agent, uptime in uptimes.items()
            }
        }

    def records(self) -> dict[str, bytes]:
        """Return a record of each agent of which anything is known, up to now; at most some 1 kB each."""
        now = self._now()
        tracks = self._tracks.items()
        return {agent: track.record(now) for agent, track in tracks if track.rings or track.kind is not None}

    def restore(self, records: Mapping[str, bytes]) -> list[str]:
        """Take over the records of an earlier process. Return the agents whose record makes no sense."""
        unusable = []
        for agent, record in records.items():
            try:
                self._tracks[agent] = _restored(record, self._now())
            except (ValueError, struct.error, zlib.error):
                unusable.append(agent)
        return unusable

    def _now(self) -> int:
        return round(self._clock() * _TENTHS)


def _window(window: Window) -> dict[str, float]:
    return {"up": round(window.up, 1), "known": round(window.known, 1)}
