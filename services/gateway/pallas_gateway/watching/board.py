"""The calls that are under way, the last that were refused, and the last confirmations; in memory, and bounded."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any, Protocol

from pallas_gateway.data_plane.record import Call, Record
from pallas_gateway.tenants import is_counted

MOST = 50
"""Entries of each kind that a viewer is shown."""
_OWNERS = 500
"""Tenants and callers whose refusals are kept, so that none of them hides those of others."""
_OF_OWNER = 20
_CONFIRMATIONS = 1000
_SHOWN = 200
"""Characters of a name from outside that are shown."""
_NO_REFUSAL = frozenset(
    {"answered", "hung_up", "unreachable", "interrupted", "timeout", "not_admitted", "failed", "function_error"}
)
_DECIDED = ("approved", "refused", "consumed")

Entry = dict[str, Any]


class Viewer(Protocol):
    """Who looks: what of others it may see."""

    def sees(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry, with its `principal`, `tenant` and `agent`, is for this viewer."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The entries of one viewer, `began` by the clock of the board; `under_way` counts those that are not shown too."""

    under_way: int
    calls: list[Entry]
    refused: list[Entry]
    confirmed: list[Entry]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Board:
    """A `Watcher` that keeps what a page shows; `clock` gives seconds, `now` the time of day."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = _utc_now) -> None:
        self.clock = clock
        self._now = now
        self._under_way: dict[int, Entry] = {}
        self._refused: OrderedDict[str, deque[Entry]] = OrderedDict()
        self._confirmations: OrderedDict[str, Entry] = OrderedDict()
        self._changed = asyncio.Event()
        self._numbers = 0
        self.questions = 0
        """Changes of confirmations so far."""

    def passed_on(self, call: Call) -> None:
        """Note a call that somebody works for from now on."""
        if call.http_method == "POST" and is_counted(call.method):
            self._under_way[call.number] = {**_about(call), "began": self.clock()}
            self._wake()

    def begin(self, call: Call) -> None:
        """Note nothing: what is to be called is not known yet."""

    def end(self, record: Record) -> None:
        ended = self._under_way.pop(record.call.number, None)
        if record.outcome not in _NO_REFUSAL:
            self._refuse(record)
        elif ended is None:
            return
        self._wake()

    def confirmation(self, id_: str, state: str, about: Mapping[str, Any]) -> None:
        """Note what has become of a confirmation."""
        entry = self._confirmations.setdefault(id_, {"principal": "", "tenant": "", "agent": "", "name": ""})
        entry |= {"principal" if key == "caller" else key: value for key, value in about.items()}
        entry |= {"state": state, "time": self._time(), "number": self._next()}
        self._confirmations.move_to_end(id_)
        if len(self._confirmations) > _CONFIRMATIONS:
            self._confirmations.popitem(last=False)
        self.questions += 1
        self._wake()

    def shown(self, viewer: Viewer) -> Shown:
        """Return what `viewer` may see: calls the oldest first, the others the newest first."""
        calls = [entry for entry in self._under_way.values() if viewer.sees(entry)]
        decided = (entry for entry in self._confirmations.values() if entry["state"] in _DECIDED)
        return Shown(
            len(calls),
            calls[:MOST],
            _newest(entry for entries in self._refused.values() for entry in entries if viewer.sees(entry)),
            _newest(entry for entry in decided if viewer.sees(entry)),
        )

    async def change(self, seconds: float) -> None:
        """Wait until something changes, for `seconds` at most."""
        changed = self._changed
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            return

    def wake(self) -> None:
        """Have all who wait look again."""
        self._wake()

    def _refuse(self, record: Record) -> None:
        entry = {**_about(record.call), "reason": record.outcome, "time": self._time(), "number": self._next()}
        owner = f"tenant {entry['tenant']}" if entry["tenant"] else f"caller {entry['principal']}"
        self._refused.setdefault(owner, deque(maxlen=_OF_OWNER)).append(entry)
        self._refused.move_to_end(owner)
        if len(self._refused) > _OWNERS:
            self._refused.popitem(last=False)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _time(self) -> str:
        return self._now().isoformat(timespec="seconds")


def _newest(entries: Iterator[Entry]) -> list[Entry]:
    return [dict(entry) for entry in nlargest(MOST, entries, key=lambda entry: entry["number"])]


def _about(call: Call) -> Entry:
    return {
        "principal": call.principal,
        "tenant": call.tenant,
        "agent": call.agent[:_SHOWN],
        "method": call.method[:_SHOWN],
        "name": (call.name or "")[:_SHOWN],
    }
