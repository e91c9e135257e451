"""How many replicas of an agent should be found: those that DNS leaves out are not probed, and so not missed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from pallas_registry.discovery.dns import Sighting

PATIENCE = 60.0
"""Seconds for which fewer may be found than are wanted: a replica that starts or moves is no reason for a change."""


class Headcount:
    """Compares what discovery finds with what is wanted, and remembers since when it is less."""

    def __init__(self, wanted: Callable[[str], int], *, clock: Callable[[], float]) -> None:
        """`wanted` gives the replicas that an agent should have, 1 if nothing is known; `clock` monotonic seconds."""
        self._wanted, self._clock = wanted, clock
        self._since: dict[str, float] = {}

    def check(self, agent: str, sighting: Sighting) -> Sighting:
        """The sighting, with `missing` where replicas have been missing for too long."""
        wanted, found = self._wanted(agent), len(sighting.endpoints)
        if found >= wanted:
            self._since.pop(agent, None)
            return sighting
        since = self._since.setdefault(agent, self._clock())
        if self._clock() - since < PATIENCE:
            return sighting
        return replace(sighting, missing=f"{found} of {wanted} replicas found")

    def retain(self, agents: Collection[str]) -> None:
        """Forget every agent that is not in `agents`."""
        self._since = {agent: since for agent, since in self._since.items() if agent in agents}
