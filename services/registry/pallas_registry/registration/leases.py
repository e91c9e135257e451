"""The registrations of this moment, and the state that follows from silence. Pure but for the clocks handed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pallas_contract.documents.health import State, timestamp
from pallas_contract.documents.reason import Reason, reported
from pallas_registry.registration.messages import Heartbeat, Register
from pallas_registry.state.status import Condition

DEGRADED_AFTER = 2
ERROR_AFTER = 4
"""Intervals of silence until an agent is degraded, and until it is in error: one lost heartbeat flips nothing."""
EXPIRES_AFTER = 24
EXPIRES_AT_LEAST = 3600.0
"""Intervals, and seconds, of silence until a registration ends."""


WELL = Condition("ok")
Forgiven = Callable[[float], float]


def none_forgiven(_since: float) -> float:
    """Forgive nothing."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Registration:
    """An agent that registered: the name of its token, the time of its first registration, its parameters."""

    agent: str
    token: str
    since: datetime
    params: Register


@dataclass(slots=True)
class _Entry:
    registration: Registration
    signal: float
    """Seconds of the monotonic clock: the last sign of life, or else the start of this registry."""
    at: datetime | None = None
    """The time of the last sign of life; None since the registry started."""
    says: Condition = WELL


def expiry(interval: float) -> float:
    """Return the seconds of silence until a registration ends."""
    return max(EXPIRES_AFTER * interval, EXPIRES_AT_LEAST)


class Leases:
    """The registrations of this moment. `clock` is monotonic seconds, `now` the time of day that people are shown.

    `forgiven` says how many of the seconds since then the registry did not run: what it could not hear is not silence.
    """

    def __init__(
        self, *, clock: Callable[[], float], now: Callable[[], datetime], forgiven: Forgiven = none_forgiven
    ) -> None:
        self._clock = clock
        self._now = now
        self._started = now()
        self._forgiven = forgiven
        self._entries: dict[str, _Entry] = {}
        self.all: tuple[Registration, ...] = ()
        """In the order of registration; another tuple after each change."""

    def get(self, agent: str) -> Registration | None:
        entry = self._entries.get(agent)
        return entry.registration if entry else None

    def last_signal(self, agent: str) -> datetime | None:
        """Return the time of the last sign of life; None when there was none since the registry started."""
        return self._entries[agent].at

    def silence(self, agent: str) -> float:
        """Return the seconds since the last sign of life, or since the registry started."""
        signal = self._entries[agent].signal
        # the time in which the registry did not run is not the agent's silence
        return self._clock() - signal - self._forgiven(signal)

    def put(self, registration: Registration) -> None:
        """Take a registration, which is a sign of life."""
        self._entries[registration.agent] = _Entry(registration, self._clock(), self._now())
        self._renew()

    def recall(self, registration: Registration) -> None:
        """Take a registration from before the registry started."""
        self._entries[registration.agent] = _Entry(registration, self._clock())
        self._renew()

    def beat(self, heartbeat: Heartbeat) -> None:
        """Take a heartbeat.

        Raises:
            KeyError: the agent is not registered.
        """
        entry = self._entries[heartbeat.agent_id]
        entry.signal = self._clock()
        entry.at = self._now()
        if heartbeat.status in ("active", "ok"):
            entry.says = Condition("ok", reported(heartbeat.message, well=True))
        else:
            state: State = "degraded" if heartbeat.status == "degraded" else "error"
            entry.says = Condition(state, reported(heartbeat.message or f"says {heartbeat.status}", well=False))

    def remove(self, agent: str) -> None:
        del self._entries[agent]
        self._renew()

    def condition(self, agent: str) -> Condition:
        """Return what the agent's own word is worth now. The reason stays the same while the silence lasts."""
        entry = self._entries[agent]
        missed = self.silence(agent) / entry.registration.params.heartbeat_interval
        silent = Reason("Silent", f"no heartbeat since {timestamp(entry.at or self._started)}")
        if missed >= ERROR_AFTER:
            return Condition("error", silent)
        if missed >= DEGRADED_AFTER:
            return Condition("degraded", silent)
        # after a restart nothing was heard of it, and its silence is not long yet: neither well nor lost
        if entry.at is None:
            return Condition("unknown", Reason("NotHeardYet", "not heard of since the registry started"))
        return entry.says

    def expired(self) -> list[Registration]:
        """Return those that were silent for too long to be called registered."""
        return [
            registration
            for registration in self.all
            if self.silence(registration.agent) >= expiry(registration.params.heartbeat_interval)
        ]

    def _renew(self) -> None:
        # another tuple and not a changed list: the catalogue sees by identity that it is another one
        self.all = tuple(entry.registration for entry in self._entries.values())
