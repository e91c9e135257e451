"""`/metrics`: read from the live model when asked, so the series of a removed agent go with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import get_args

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from pallas_contract import __version__
from pallas_contract.documents.health import GAUGE, State
from pallas_registry.state.agents import AgentStates, MemberStates
from pallas_registry.state.history import Change, MemberKind

_BUCKETS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
"""Seconds; a probe ends after 3, and says goodbye to a session in one more."""


_CHANGES: dict[MemberKind, str] = {
    "agent": "Changes of an agent's state.",
    "service": "Changes of a service's state.",
}

MANY = 1000
"""Agents up to whose number the exposition is written at once."""


class _Snapshot(CollectorRegistry):
    """A snapshot, as the encoders want it."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


class Metrics:
    """A registry of its own with everything the registry measures."""

    def __init__(
        self,
        states: MemberStates,
        *,
        config_ok: Callable[[], bool],
        lost: Callable[[], float] = float,
        silences: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """`silences` has the seconds since each registered agent was last heard of; `lost` is `StallClock.lost`."""
        self._agent_states = states.agents
        self._service_states = states.services
        self._config_ok = config_ok
        self._lost = lost
        self._silences = silences
        self._changes: Counter[tuple[str, State, State]] = Counter()
        self._durations = Histogram(
            "pallas_registry_probe_duration_seconds",
            "How long probes of agents took.",
            buckets=_BUCKETS,
            registry=None,
        )
        self._lateness = Histogram(
            "pallas_registry_probe_lateness_seconds",
            "How much later than due probes began: what a registry with too many agents to ask shows first.",
            buckets=_BUCKETS,
            registry=None,
        )

    def count(self, change: Change) -> None:
        self._changes[change.agent, change.old, change.new] += 1

    def retain(self, agents: Collection[str]) -> None:
        """Drop what was counted for others than these: names that come and go must not fill the memory."""
        present = set(agents)
        self._changes = Counter({key: count for key, count in self._changes.items() if key[0] in present})

    def observe(self, seconds: float) -> None:
        self._durations.observe(seconds)

    def late(self, seconds: float) -> None:
        self._lateness.observe(seconds)

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition and its content type, in the format the scraper's Accept header asks for.

        That of thousands of agents takes a good part of a second, and is written beside the event loop.
        """
        encode, content_type = choose_encoder(accept)
        snapshot = _Snapshot(list(self.collect()))
        if len(self._agent_states.agents) <= MANY:
            return encode(snapshot), content_type
        # encoding is pure Python and would hold up the probes of a large fleet
        return await asyncio.to_thread(encode, snapshot), content_type

    def collect(self) -> Iterator[Metric]:
        """Yield everything as it is now."""
        yield from self._agents()
        yield from self._services()
        yield self._states()
        yield self._counted("agent", self._agent_states)
        yield self._counted("service", self._service_states)
        yield from self._registered()
        config_ok = GaugeMetricFamily(
            "pallas_registry_config_ok", "1 when the files on disk are the ones in use, 0 when they are broken."
        )
        config_ok.add_metric([], float(self._config_ok()))
        yield config_ok
        build = GaugeMetricFamily("pallas_build_info", "1; the label tells the version.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        lost = CounterMetricFamily(
            "pallas_registry_lost_seconds", "Time in which the registry should have run and did not."
        )
        lost.add_metric([], self._lost())
        yield lost
        yield from self._durations.collect()
        yield from self._lateness.collect()

    def _agents(self) -> Iterator[Metric]:
        health = GaugeMetricFamily(
            "pallas_agent_health",
            "1 ok, 0.5 degraded, in need of credentials or starting, 0 error or unknown.",
            labels=["agent"],
        )
        reason = GaugeMetricFamily(
            "pallas_agent_reason", "1; the label tells the code of the reason for the state.", labels=["agent", "code"]
        )
        replicas = GaugeMetricFamily("pallas_agent_replicas", "Addresses found for the agent.", labels=["agent"])
        age = GaugeMetricFamily(
            "pallas_registry_last_probe_age_seconds", "Since the replica probed longest ago.", labels=["agent"]
        )
        for agent in self._agent_states.agents:
            condition = self._agent_states.condition(agent)
            health.add_metric([agent], GAUGE[condition.state])
            reason.add_metric([agent, condition.reason.code], 1)
            replicas.add_metric([agent], len(self._agent_states.endpoints(agent)))
            seconds = self._agent_states.age(agent)
            if seconds is not None:
                age.add_metric([agent], seconds)
        undeclared = GaugeMetricFamily(
            "pallas_registry_undeclared_addresses", "Addresses in the fleet's DNS domain that are no agent's."
        )
        undeclared.add_metric([], len(self._agent_states.undeclared))
        yield from (health, reason, replicas, age, undeclared)

    def _states(self) -> Metric:
        states = Counter(self._agent_states.condition(agent).state for agent in self._agent_states.agents)
        family = GaugeMetricFamily("pallas_registry_agents", "Agents by state.", labels=["status"])
        for state in get_args(State):
            family.add_metric([state], states[state])
        return family

    def _registered(self) -> Iterator[Metric]:
        silences = self._silences()
        age = GaugeMetricFamily(
            "pallas_registry_heartbeat_age_seconds", "Since a registered agent was last heard of.", labels=["agent"]
        )
        for agent, seconds in silences.items():
            age.add_metric([agent], seconds)
        count = GaugeMetricFamily("pallas_registry_registered_agents", "Agents that registered themselves.")
        count.add_metric([], len(silences))
        yield from (age, count)

    def _services(self) -> Iterator[Metric]:
        health = GaugeMetricFamily(
            "pallas_service_health",
            "As pallas_agent_health, of a service that is probed. In need of credentials is 1: it is there.",
            labels=["name"],  # `service` is a label of Prometheus Operator's own
        )
        reason = GaugeMetricFamily(
            "pallas_service_reason",
            "1; the label tells the code of the reason for the state.",
            labels=["name", "code"],
        )
        for service in self._service_states.agents:
            condition = self._service_states.condition(service)
            reason.add_metric([service, condition.reason.code], 1)
            if condition.reason.code != "NotProbed":
                health.add_metric([service], 1.0 if condition.state == "unauthenticated" else GAUGE[condition.state])
        yield from (health, reason)

    def _counted(self, kind: MemberKind, states: AgentStates) -> Metric:
        label = "name" if kind == "service" else kind
        family = CounterMetricFamily(f"pallas_{kind}_state_changes", _CHANGES[kind], labels=[label, "old", "new"])
        # the series of a member that is gone would be exposed for ever
        present = set(states.agents)
        for (agent, old, new), count in sorted(self._changes.items()):
            if agent in present:
                family.add_metric([agent, old, new], count)
        return family
