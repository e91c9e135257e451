"""A limit of how often somebody may ask: a bucket per key that fills evenly (the generic cell rate algorithm)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

_KEYS = 4096


class RateLimit:
    """A limit of at most `burst` at once and `rate` per second of `clock` after that, for each key."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._step = 1 / rate
        self._slack = (burst - 1) / rate
        self._clock = clock
        self._due: dict[Hashable, float] = {}

    def wait(self, key: Hashable) -> float:
        """Return 0, and count the request; or return the seconds until it would be let through."""
        # the generic cell rate algorithm keeps one time per key: when its bucket will be empty
        now = self._clock()
        due = max(self._due.get(key, now), now)
        if due - now > self._slack:
            return due - now - self._slack
        if len(self._due) >= _KEYS:  # full buckets are as good as none
            self._due = {other: at for other, at in self._due.items() if at > now}
        self._due[key] = due + self._step
        return 0.0
