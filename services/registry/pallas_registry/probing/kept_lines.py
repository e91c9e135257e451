"""Connections that outlive a probe: one to each replica that is well, for as long as it is followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pallas_contract.probe.probe import Line
from pallas_registry.discovery.sighting import Endpoint

IDLE = 20.0
"""Seconds after which a connection that no probe has used is dropped: its replica is no longer followed, or rarely."""
SHARE = 4
"""One of so many connections that probes may have is left open between them; the rest is for those that need a new
one."""


class KeptLines:
    """The lines that are open between probes, at most `most`; who takes one is alone with it until it is given back."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic, idle: float = IDLE) -> None:
        """Begin with none. `clock` is monotonic seconds; `idle` seconds is a line kept without a use."""
        self._most = most
        self._clock = clock
        self._idle = idle
        self._lines: dict[Endpoint, tuple[float, Line]] = {}
        """By the time of their last use: who was used last comes last."""
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._lines)

    def take(self, endpoint: Endpoint) -> Line:
        """Return the line to `endpoint`, or a new one."""
        return self._lines.pop(endpoint, (0.0, None))[1] or Line()

    def give_back(self, endpoint: Endpoint, line: Line) -> None:
        """Keep the line where it can be used again, and there is room."""
        if not line.kept:
            return
        if endpoint in self._lines or len(self._lines) >= self._most:
            line.close()
            return
        self._lines[endpoint] = (self._clock(), line)
        if self._looking is None:
            self._look_later()

    def close(self) -> None:
        """Drop all of them."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        while self._lines:
            self._lines.popitem()[1][1].close()

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(self._idle, self._look)

    def _look(self) -> None:
        """Drop those that nobody has used: a replica that is no longer followed must not go on having a connection."""
        old = self._clock() - self._idle
        for endpoint in [endpoint for endpoint, (used, _) in self._lines.items() if used <= old]:
            self._lines.pop(endpoint)[1].close()
        self._looking = None
        if self._lines:
            self._look_later()
