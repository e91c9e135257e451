"""Health of the gateway: its own, and which agents did not answer when they were last asked through it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pallas_contract import names
from pallas_contract.documents.health import Health
from pallas_gateway.data_plane.record import Call, Record

_LOST = frozenset({"unreachable", "interrupted", "timeout", "not_admitted"})


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Reachability:
    """A `Watcher` that remembers how the last request to each agent ended; it asks nobody by itself."""

    def __init__(self, problem: Callable[[], str] = str, now: Callable[[], datetime] = _utc_now) -> None:
        """`problem` says why callers are turned away at present, empty when they are not."""
        self._problem = problem
        self._now = now
        self._lost: dict[str, str] = {}

    def begin(self, call: Call) -> None:
        """Take no note: nothing is known yet."""

    def end(self, record: Record) -> None:
        member = record.call.agent if record.member is None else record.member
        if record.outcome == "answered":
            self._lost.pop(member, None)
        elif record.outcome in _LOST and member not in ("", names.GATEWAY):
            self._lost[member] = record.outcome

    @property
    def lost(self) -> dict[str, str]:
        """Return agent -> how it failed, sorted."""
        return dict(sorted(self._lost.items()))

    def current(self, *, names: bool = True) -> Health:
        """Return `degraded` while an agent did not answer or keys are missing: the gateway itself serves on.

        Without `names` it says how many agents that are, and not which.
        """
        lost = self.lost
        words = [f"last calls failed: {', '.join(lost) if names else f'of {len(lost)} members'}"] if lost else []
        words += [self._problem()] if self._problem() else []
        return Health("degraded" if words else "ok", self._now(), "; ".join(words))
