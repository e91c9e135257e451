"""The model of the fleet, and all that changes it: readings of the file, sightings, probes and registrations."""

from __future__ import annotations

import asyncio

import structlog

from pallas_contract.launch import service_check
from pallas_contract.probe.probe import Result
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.replica_count import ReplicaCount
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.fleet_file import FleetReading, FleetWatcher
from pallas_registry.http.metrics import Metrics
from pallas_registry.probing.recheck import Recheck
from pallas_registry.registration.registrar import Registrar
from pallas_registry.settings import Settings
from pallas_registry.state import drift
from pallas_registry.state.agents import AgentStates, MemberStates
from pallas_registry.state.history import Change, History
from pallas_registry.state.status import Condition
from pallas_registry.state.uptime import Uptime
from pallas_registry.status_page import overview

QUICK = 1.0
"""Seconds between two rounds of discovery while an agent is starting: a fleet that came up is seen to be up."""
STARTING = 60.0
"""Seconds in which an agent that is not there yet is no reason for a warning: fleets start together."""

_log = structlog.get_logger()


class Monitor:
    """The agents of the file and those that registered, in one model; everything happens on the event loop."""

    def __init__(
        self,
        settings: Settings,
        reading: FleetReading,
        watcher: FleetWatcher,
        dependencies: Dependencies,
        *,
        updated: asyncio.Event,
    ) -> None:
        """Take what the settings and the file say; `updated` is set when the documents would say something else."""
        self.reading = reading
        """The one in use."""
        self.agents_changed = asyncio.Event()
        """Set when discovery has agents of the file to look for now."""
        self.registrations_changed = asyncio.Event()
        """The same for agents that registered."""
        self.services_changed = asyncio.Event()
        """The same for services of the file."""
        self.history = History()
        began = dependencies.now().timestamp() - dependencies.clock()
        # a clock that is set meanwhile must not count an hour twice
        self.uptime = Uptime(clock=lambda: began + dependencies.clock())
        for agent in self.uptime.restore(dependencies.store.load_uptime()):
            _log.warning("a kept uptime is not usable", agent=agent)
        self._settings = settings
        self._watcher = watcher
        self._clock = dependencies.clock
        self._now = dependencies.now
        self._started = dependencies.clock()
        self._patience = dependencies.patience
        self._ready = False
        self.agent_states = AgentStates(
            clock=self._clock,
            now=self._now,
            on_change=self._record,
            on_update=updated.set,
            start_period=dependencies.start_period,
        )
        self.service_states = AgentStates(
            clock=self._clock,
            now=self._now,
            on_change=self._record,
            on_update=updated.set,
            start_period=dependencies.start_period,
            kind="service",
        )
        """The services of the file. Apart: they are in no document about agents, and the registry waits for none."""
        self.states = MemberStates(self.agent_states, self.service_states)
        self.registrar = Registrar(
            dependencies.store,
            self.agent_states,
            self._expect,
            clock=self._clock,
            forgiven=dependencies.stall_clock.forgiven,
            now=self._now,
        )
        leases = self.registrar.leases
        self.metrics = Metrics(
            self.states,
            config_ok=lambda: watcher.ok,
            lost=lambda: dependencies.stall_clock.lost,
            silences=lambda: {registration.agent: leases.silence(registration.agent) for registration in leases.all},
        )
        self._recheck = Recheck(
            dependencies.check,
            self.report,
            endpoints=self.agent_states.endpoints,
            before=self.agent_states.result,
            clock=self._clock,
        )
        self._replica_count = ReplicaCount(self._expected_replicas, clock=self._clock)
        # last: it calls back into all of the above
        self.apply(reading)

    def apply(self, reading: FleetReading) -> None:
        """Use a new reading of the file from now on."""
        self.reading = reading
        self.registrar.use(reading.fleet)
        self._replica_count.retain(reading.fleet.agents)
        self.service_states.expect(list(service_check.followed(reading.fleet)))
        self.services_changed.set()
        self._expect()
        self.agent_states.lock(drift.expected(reading.lock, reading.fleet))
        self.registrar.announce()

    def sight(self, agent: str, sighting: Sighting) -> None:
        """Take the word of discovery about an agent of the file."""
        self.agent_states.set_sighting(agent, self._replica_count.check(agent, sighting))

    def note_undeclared(self, addresses: tuple[str, ...]) -> None:
        """Take the word of discovery about addresses in the fleet's domain that are no agent's."""
        for address in set(addresses) - set(self.agent_states.undeclared):
            _log.warning("undeclared address in the fleet's domain", address=address)
        self.agent_states.set_undeclared(addresses)

    def report(self, agent: str, endpoint: Endpoint, result: Result) -> None:
        """Take the result of a probe."""
        self.metrics.observe(result.latency)
        self.agent_states.add_result(agent, endpoint, result)

    def report_service(self, service: str, endpoint: Endpoint, result: Result) -> None:
        """Take the result of a probe of a service."""
        self.metrics.observe(result.latency)
        self.service_states.add_result(service, endpoint, result)

    async def recheck(self, agent: str) -> Condition:
        """Look for the agent and probe it now.

        Raises:
            KeyError: there is no such agent.
            Busy: it is not the caller's turn (recheck).
        """
        await self._recheck(agent)
        self.agents_changed.set()
        return self.agent_states.condition(agent)

    def waiting(self) -> str:
        """Return why the registry is not ready; empty when it is, from then on (app.Waiting).

        Where it is waited for with the fleet, in containers, the first look at it shows a fleet that is up: it becomes
        ready after the agents. As a process it must not hold up their start.
        """
        unknown = self.agent_states.waiting
        starting = self.agent_states.starting if self._settings.placement == "container" else ()
        self._ready = self._ready or not (unknown or starting) or self._clock() - self._started >= self._patience
        if self._ready:
            return ""
        total = len(self.reading.fleet.agents)
        return f"{len(unknown)} of {total} agents not probed yet" if unknown else f"{len(starting)} of {total} starting"

    def pause(self, states: AgentStates) -> float:
        """Return the seconds until discovery should look again for those in `states`."""
        interval = self.reading.fleet.registry.probe_interval
        return min(QUICK, interval) if states.waiting or states.starting else interval

    def overview(self) -> overview.Overview:
        """Return the state of the fleet at this moment."""
        return overview.gather(
            self.reading,
            self._settings.placement,
            self.states,
            self.history,
            now=self._now(),
            config_ok=self._watcher.ok,
            leases=self.registrar.leases,
            uptime=self.uptime,
        )

    def _expected_replicas(self, agent: str) -> int:
        """As processes, there is one of each agent whatever the file says."""
        return self.reading.expected_replicas(agent) if self._settings.placement == "container" else 1

    def _expect(self) -> None:
        """Tell the agent_states which agents there are, after some came or went, and have them looked for."""
        registered = [registration.agent for registration in self.registrar.leases.all]
        self.agent_states.expect([*self.reading.fleet.agents, *registered])
        self.uptime.retain(self.agent_states.agents)
        self.metrics.retain([*self.agent_states.agents, *self.service_states.agents])
        self.registrations_changed.set()

    def _record(self, change: Change) -> None:
        self.history.record(change)
        if change.kind == "agent":
            self.uptime.record(change.agent, change.new)
        self.metrics.count(change)
        starting = change.old == "unknown" and self._clock() - self._started < STARTING
        log = (
            _log.info
            if change.new in ("ok", "starting") or starting or change.reason.code == "NotProbed"
            else _log.warning
        )
        log(
            f"{change.kind} state changed",
            **{"agent" if change.kind == "agent" else "name": change.agent},  # `service` is who writes the line
            old=change.old,
            new=change.new,
            code=change.reason.code,
            reason=change.reason.message,
        )
