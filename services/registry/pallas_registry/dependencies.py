"""The world of the service, in one value that tests put another one in the place of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pallas_registry.discovery.dns import Resolve
from pallas_registry.discovery.sighting import Discovery
from pallas_registry.probing.scheduler import MOST, Check, Prober
from pallas_registry.probing.stall_clock import StallClock
from pallas_registry.registration.store import MemoryRegistrations, RegistrationStore
from pallas_registry.timing import Sleep

PATIENCE = 5.0
"""Seconds after which the registry is ready though not every agent has been probed."""


def utc_now() -> datetime:
    """Return the time of day that people are shown."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Clocks, DNS, the prober and the store of registrations.

    `discovery`, `services` and `resolve` None mean those of the settings, and the system's. `most` is how many probes
    may go on at once. An agent that is not up yet is starting for `start_period` seconds, and the registry is ready
    after `patience` seconds at the latest. `stall_clock` has to be started for lost time to count.
    """

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now
    sleep: Sleep = asyncio.sleep
    discovery: Discovery | None = None
    check: Check = field(default_factory=lambda: Prober().check)
    store: RegistrationStore = field(default_factory=MemoryRegistrations)
    resolve: Resolve | None = None
    most: int = MOST
    start_period: float = 0.0
    patience: float = PATIENCE
    stall_clock: StallClock = field(default_factory=StallClock)
    services: Discovery | None = None
