"""The number of replicas that should be found: those that DNS leaves out are not probed, and so not missed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from pallas_contract.documents.reason import Reason
from pallas_registry.discovery.sighting import Sighting

PATIENCE = 60.0
"""Seconds for which fewer may be found than should run: a replica that starts or moves is no reason for a change."""


class ReplicaCount:
    """A comparison of the replicas found with those that should run, and since when they are fewer."""

    def __init__(self, expected: Callable[[str], int], *, clock: Callable[[], float]) -> None:
        """Take `expected`, the replicas that an agent should have or 1, and `clock`, monotonic seconds."""
        self._expected = expected
        self._clock = clock
        self._since: dict[str, float] = {}

    def check(self, agent: str, sighting: Sighting) -> Sighting:
        """Return the sighting, with `missing` where replicas have been missing, or none was ready, for too long."""
        expected = self._expected(agent)
        actual = len(sighting.endpoints) if sighting.ready else 0
        if actual >= expected:
            self._since.pop(agent, None)
            return sighting
        since = self._since.setdefault(agent, self._clock())
        if self._clock() - since < PATIENCE:
            return sighting
        found = "found" if sighting.ready else "ready"
        return replace(sighting, missing=Reason("ReplicaMissing", f"{actual} of {expected} replicas {found}"))

    def retain(self, agents: Collection[str]) -> None:
        """Forget every agent that is not in `agents`."""
        self._since = {agent: since for agent, since in self._since.items() if agent in agents}
