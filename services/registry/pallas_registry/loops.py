"""The loops of the service; each goes on until it is cancelled, whatever a round of it raises."""

from __future__ import annotations

import asyncio

import structlog

from pallas_contract.launch import service_check
from pallas_contract.problems import Refused
from pallas_registry.catalogue.publisher import Publisher
from pallas_registry.dependencies import Dependencies
from pallas_registry.discovery.resolver import Resolver
from pallas_registry.discovery.sighting import Discovery, Sighting
from pallas_registry.fleet_file import POLL_SECONDS, FleetReading, FleetWatcher
from pallas_registry.monitor import Monitor
from pallas_registry.probing.scheduler import Scheduler
from pallas_registry.registration.reach import UrlDiscovery
from pallas_registry.registration.registrar import TICK, Registrar
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.state.uptime import Uptime
from pallas_registry.timing import Sleep, surviving, wait_for
from pallas_service.sqlite_file import CannotStore

KEEP_UPTIME = 900.0
"""Seconds between two times that the uptime is saved; it is once more at the end."""

_log = structlog.get_logger()


async def follow_file(
    watcher: FleetWatcher, monitor: Monitor, publisher: Publisher, scheduler: Scheduler, *, sleep: Sleep
) -> None:
    """Use each new reading of the file; a broken one changes nothing but what is said about it."""
    while True:
        await sleep(POLL_SECONDS)
        with surviving("fleet file"):  # what is said about a file may fail as well, by its size
            try:
                if reading := await asyncio.to_thread(watcher.poll):
                    _use(reading, monitor, publisher, scheduler)
            except Refused as refused:
                monitor.history.ring()
                problems = [str(problem) for problem in refused.problems]
                defect = refused.__cause__  # ours, where there is one: then the log has to say where
                _log.error("fleet file refused, the earlier one stays in use", problems=problems, exc_info=defect)
            except Exception:
                watcher.ok = False
                monitor.history.ring()
                _log.exception("fleet file read, but not in use")


def _use(reading: FleetReading, monitor: Monitor, publisher: Publisher, scheduler: Scheduler) -> None:
    before = set(monitor.agent_states.agents)
    for problem in reading.lock_problems:
        _log.warning("the earlier agents.lock stays in use", problem=str(problem))
    publisher.hold()
    monitor.apply(reading)
    # before discovery looks again: an agent that is gone is not probed once more
    scheduler.retain(monitor.agent_states.agents)
    monitor.agents_changed.set()
    after = set(monitor.agent_states.agents)
    _log.info("fleet file read again", added=sorted(after - before), removed=sorted(before - after))


async def discover(discovery: Discovery, monitor: Monitor, scheduler: Scheduler, *, sleep: Sleep) -> None:
    """Look for the agents of the file, every probe interval and whenever they change."""

    def on_sighting(agent: str, sighting: Sighting) -> None:
        if agent in monitor.reading.fleet.agents:  # the file may have changed during the sweep
            monitor.sight(agent, sighting)
            scheduler.follow(agent, sighting.endpoints)

    while True:
        monitor.agents_changed.clear()
        with surviving("discovery"):
            await discovery.sweep(tuple(monitor.reading.fleet.agents), on_sighting)
            monitor.note_undeclared(discovery.undeclared)
        await wait_for(monitor.agents_changed, monitor.pause(monitor.agent_states), sleep)


async def discover_registered(dependencies: Dependencies, monitor: Monitor, scheduler: Scheduler) -> None:
    """Look for the agents that registered: apart, so that they cannot delay those of the file."""
    registrar = monitor.registrar
    sleep = dependencies.sleep
    url_discovery = UrlDiscovery(
        dependencies.resolve or Resolver(), sleep=sleep, bound=dependencies.stall_clock.timeout
    )

    def on_sighting(agent: str, url: str, sighting: Sighting) -> None:
        if registrar.url(agent) == url:  # it may have moved or left during the sweep
            monitor.agent_states.set_sighting(agent, sighting)
            scheduler.follow(agent, sighting.endpoints)

    while True:
        monitor.registrations_changed.clear()
        with surviving("discovery of registered agents"):
            urls = registrar.urls
            scheduler.retain(tuple(urls))
            await url_discovery.sweep(urls, registrar.reach, on_sighting)
        await wait_for(monitor.registrations_changed, monitor.reading.fleet.registry.probe_interval, sleep)


async def discover_services(discovery: Discovery, monitor: Monitor, scheduler: Scheduler, *, sleep: Sleep) -> None:
    """Look for the services of the file, as often as for its agents, and without delaying those."""

    def on_sighting(service: str, sighting: Sighting) -> None:
        if service in service_check.followed(monitor.reading.fleet):  # the file may have changed during the sweep
            monitor.service_states.set_sighting(service, sighting)
            scheduler.follow(service, sighting.endpoints)

    while True:
        monitor.services_changed.clear()
        with surviving("discovery of services"):
            services = service_check.followed(monitor.reading.fleet)
            scheduler.retain(services)
            await discovery.sweep(services, on_sighting)
        await wait_for(monitor.services_changed, monitor.pause(monitor.service_states), sleep)


async def watch_leases(registrar: Registrar, *, sleep: Sleep) -> None:
    """Draw the conclusions from silence, once a second."""
    while True:
        with surviving("leases"):
            await registrar.tick()
        await sleep(TICK)


async def keep_uptime(store: RegistrationStore, uptime: Uptime, *, sleep: Sleep) -> None:
    """Save the uptime from time to time: what a registry that is killed forgets is no more than that."""
    while True:
        await sleep(KEEP_UPTIME)
        with surviving("uptime"):
            await save_uptime(store, uptime)


async def save_uptime(store: RegistrationStore, uptime: Uptime) -> None:
    """Save the uptime where there is a place that lasts."""
    try:
        await store.save_uptime(uptime.records)
    except CannotStore as error:
        _log.error("uptime cannot be stored", reason=str(error))
