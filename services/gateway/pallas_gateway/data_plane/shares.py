"""Shares of what all callers have together: whose a request is, and how many streams one may listen to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pallas_gateway.tenants import Allowance
from pallas_service.access.caller import Caller
from pallas_service.http.connections import CONNECTIONS

MOST = CONNECTIONS // 4
"""Streams of one owner where nothing else is said."""


def owner(caller: Caller | None, allowance: Allowance | None) -> str:
    """Return who has a request: a tenant, else a verified caller; empty where nobody is verified."""
    if allowance is not None:
        return f"tenant {allowance.name}"
    return f"caller {caller.identity}" if caller else ""


class TooMany(Exception):
    """One stream more than an owner may listen to."""


class Streams:
    """Streams that are only listened to, which have no end of their own: `most` for each owner."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def listening(self, owner: str) -> Iterator[None]:
        """Count one stream of `owner` until the context ends; where that is empty, nothing.

        Raises:
            TooMany: it has `most` of them.
        """
        if not owner:
            yield
            return
        if self._open[owner] >= self._most:
            raise TooMany(f"{self._most} streams are listened to, and no more are let in")
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]
