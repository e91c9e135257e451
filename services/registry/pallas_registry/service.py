"""The registry without its socket: every part made once and handed to those that need it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial

from pallas_contract.launch import addresses
from pallas_registry import loops
from pallas_registry.catalogue.catalogue import Catalogue
from pallas_registry.catalogue.publisher import Publisher
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery import source
from pallas_registry.fleet_file import FleetReading, FleetWatcher
from pallas_registry.http.app import Backend
from pallas_registry.http.events import Streams, affordable
from pallas_registry.mcp.registration import RegistrationMethods
from pallas_registry.mcp.server import McpServer
from pallas_registry.monitor import Monitor
from pallas_registry.probing.scheduler import STARTING_EVERY, Limits, Pace, Report, Scheduler, Spawn
from pallas_registry.settings import Settings
from pallas_registry.state.agents import AgentStates
from pallas_registry.status_page.page import StatusPage, assets
from pallas_registry.timing import Brief

OUTSIDE = 16
"""Most probes of registered agents at once."""


class Service:
    """Follows the file, looks for agents, probes them and publishes the outcome."""

    def __init__(
        self, settings: Settings, reading: FleetReading, watcher: FleetWatcher, dependencies: Dependencies
    ) -> None:
        self._settings = settings
        self._watcher = watcher
        self._dependencies = dependencies
        updated = asyncio.Event()
        self.monitor = Monitor(settings, reading, watcher, dependencies, updated=updated)
        self.publisher = Publisher(
            Catalogue(now=dependencies.now, placement=settings.placement),
            self.monitor.states,
            self.monitor.history,
            updated=updated,
            static=assets(),
            reading=lambda: self.monitor.reading,
            registrations=lambda: self.monitor.registrar.leases.all,
            dependencies=dependencies,
        )
        # before the first request: a registry that knows nothing yet has documents that say so
        self.publisher.publish()
        registration = RegistrationMethods(
            self.monitor.registrar, lambda: self.monitor.reading.tokens, clock=dependencies.clock
        )
        self._mcp = McpServer(self.monitor.overview, registration.handlers)

    def backend(self, run: str) -> Backend:
        """Return what the HTTP side answers from; `run` tells this process from others in the ids of events."""
        monitor = self.monitor
        page = StatusPage(
            monitor.overview,
            monitor.uptime.buckets,
            version=lambda: monitor.history.rings,
            clock=self._dependencies.clock,
        )
        return Backend(
            find=self.publisher.find,
            metrics=monitor.metrics,
            waiting=monitor.waiting,
            page=page.html,
            streams=Streams(monitor.history, run=run, limit=affordable()),
            recheck=monitor.recheck,
            mcp=self._mcp.answer,
            hosts=self._hosts,
            uptime=Brief(monitor.uptime.document, clock=self._dependencies.clock),
        )

    async def run(self) -> None:
        """Run all loops until cancelled, or until one fails."""
        monitor = self.monitor
        sleep = self._dependencies.sleep
        discovery = self._dependencies.discovery or source.from_settings(
            self._settings,
            default=lambda agent: addresses.authority(monitor.reading.fleet, agent, "local"),
            bound=self._dependencies.stall_clock.timeout,
        )
        services = self._dependencies.services or source.of_services(
            self._settings,
            lambda: monitor.reading.fleet,
            self._dependencies.resolve,
            sleep=sleep,
            bound=self._dependencies.stall_clock.timeout,
        )
        async with asyncio.TaskGroup() as group:
            schedule = partial(
                self._scheduler, spawn=group.create_task, states=monitor.agent_states, report=monitor.report
            )
            scheduler = schedule(limits=Limits(connections=self._dependencies.most))
            group.create_task(loops.follow_file(self._watcher, monitor, self.publisher, scheduler, sleep=sleep))
            group.create_task(loops.discover(discovery, monitor, scheduler, sleep=sleep))
            # somebody else's hosts, which one who registers may name
            outside = Limits(slots=OUTSIDE, connections=OUTSIDE, starting=STARTING_EVERY)
            registered = schedule(limits=outside)
            group.create_task(loops.discover_registered(self._dependencies, monitor, registered))
            beside = self._scheduler(
                spawn=group.create_task, limits=Limits(), states=monitor.service_states, report=monitor.report_service
            )
            group.create_task(loops.discover_services(services, monitor, beside, sleep=sleep))
            group.create_task(loops.watch_leases(monitor.registrar, sleep=sleep))
            group.create_task(loops.keep_uptime(self._dependencies.store, monitor.uptime, sleep=sleep))
            group.create_task(self.publisher.run())

    def _hosts(self) -> Collection[str]:
        return self._settings.hosts or addresses.registry_hosts(self.monitor.reading.fleet)

    def _scheduler(self, *, spawn: Spawn, limits: Limits, states: AgentStates, report: Report) -> Scheduler:
        monitor = self.monitor
        return Scheduler(
            self._dependencies.check,
            report,
            before=states.result,
            spawn=spawn,
            pace=Pace(
                interval=lambda: monitor.reading.fleet.registry.probe_interval,
                clock=self._dependencies.clock,
                sleep=self._dependencies.sleep,
            ),
            late=monitor.metrics.late,
            limits=limits,
        )
