"""Everything that goes on behind the HTTP side, wired together: follow the file, look, probe, publish."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import structlog

from pallas_contract.launch import addresses
from pallas_contract.probe.probe import Result
from pallas_contract.problems import Refused
from pallas_registry.catalogue import prometheus_sd
from pallas_registry.catalogue.publisher import Catalogue
from pallas_registry.discovery.dns import DnsDiscovery, Resolve, Sleep
from pallas_registry.discovery.replica_count import ReplicaCount
from pallas_registry.discovery.resolver import Resolver
from pallas_registry.discovery.sighting import Discovery, Endpoint, Sighting
from pallas_registry.discovery.static import StaticDiscovery
from pallas_registry.fleet_file import POLL_SECONDS, Follower, Loaded
from pallas_registry.http.app import Shown
from pallas_registry.http.events import Streams
from pallas_registry.http.metrics import Metrics
from pallas_registry.mcp.registration import RegistrationMethods
from pallas_registry.mcp.server import McpServer
from pallas_registry.probing.recheck import Recheck
from pallas_registry.probing.scheduler import MOST, Check, Prober, Scheduler
from pallas_registry.probing.stall_clock import Pulse
from pallas_registry.registration.reach import Outside
from pallas_registry.registration.registrar import TICK, Registrar
from pallas_registry.registration.store import MemoryRegistrations, RegistrationStore
from pallas_registry.serving.documents import Document
from pallas_registry.settings import Settings
from pallas_registry.state.agents import Board
from pallas_registry.state.history import Change, History
from pallas_registry.state.status import Verdict
from pallas_registry.status_page import overview
from pallas_registry.status_page import page as status_page_page

PATIENCE = 5.0
"""Seconds after which the registry is ready though not every agent has been probed."""
AT_ONCE = 0.01
"""Seconds that making the documents may take without a pause after it."""
OUTSIDE = 16
"""Most probes of registered agents at once."""
STARTING = 60.0
"""Seconds in which an agent that is not there yet is no reason for a warning: fleets start together."""
HOLD = 1.0
"""Most seconds for which a new reading of the file waits for the first word about the agents it adds: then they appear
as they are, and those who follow the ETag see one change and not two."""

_log = structlog.get_logger()


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class World:
    """What the service touches beside files; tests put their own in its place.

    `discovery` and `resolve` None mean the ones that the settings ask for, and the system's. `most` is how many probes
    may go on at once. `pulse` has to be started for lost time to count.
    """

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now
    sleep: Sleep = asyncio.sleep
    discovery: Discovery | None = None
    check: Check = field(default_factory=lambda: Prober().check)
    store: RegistrationStore = field(default_factory=MemoryRegistrations)
    resolve: Resolve | None = None
    most: int = MOST
    pulse: Pulse = field(default_factory=Pulse)


class Service:
    """The registry without its socket. `run` works until cancelled and raises what it cannot handle."""

    def __init__(self, settings: Settings, loaded: Loaded, follower: Follower, world: World) -> None:
        self._settings, self._loaded, self._follower, self._world = settings, loaded, follower, world
        self._started = world.clock()
        self._hold_until = 0.0
        self._look_now, self._look_outside_now, self._dirty = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.history = History()
        self._board = Board(clock=world.clock, now=world.now, on_change=self._changed, on_update=self._dirty.set)
        self._registrar = Registrar(
            world.store,
            self._board,
            self._members,
            clock=world.clock,
            forgiven=world.pulse.forgiven,
            now=world.now,
        )
        registration = RegistrationMethods(self._registrar, lambda: self._loaded.tokens, clock=world.clock)
        self._mcp = McpServer(partial(self._overview, None), registration.handlers)
        ledger = self._registrar.ledger
        self.metrics = Metrics(
            self._board,
            config_ok=lambda: follower.ok,
            lost=lambda: world.pulse.lost,
            silences=lambda: {each.agent: ledger.silence(each.agent) for each in ledger.all},
        )
        self.catalogue = Catalogue(now=world.now, placement=settings.placement)
        self._recheck = Recheck(
            world.check,
            self._report,
            endpoints=self._board.endpoints,
            before=self._board.result,
            clock=world.clock,
        )
        self._headcount = ReplicaCount(self._wanted, clock=world.clock)
        self._others = status_page_page.assets()
        self._targets_of = -1
        self._use(loaded)
        self._renew()

    def shown(self, run: str) -> Shown:
        """What the HTTP side shows; `run` tells this process from others in the ids of events."""
        page = status_page_page.StatusPage(self._overview, version=lambda: self.history.rings, clock=self._world.clock)
        streams = Streams(self.history, run=run)
        return Shown(
            find=self.find,
            metrics=self.metrics,
            waiting=self.waiting,
            page=page.html,
            streams=streams,
            recheck=self.recheck,
            mcp=self._mcp.answer,
            hosts=self._hosts,
        )

    def _hosts(self) -> Collection[str]:
        return self._settings.hosts or addresses.registry_hosts(self._loaded.fleet)

    def find(self, method: str, path: str, query: bytes) -> Document | None:
        """The document of a path, kept or joined of ready entries (prebuilt.Find)."""
        return self.kept(path) or self.catalogue.find(method, path, query)

    def kept(self, path: str) -> Document | None:
        """The document of a path if there is no work in it (shortcut.Kept)."""
        return self.catalogue.kept(path) or self._others.get(path)

    async def recheck(self, agent: str) -> Verdict:
        """Look for the agent and probe it now.

        Raises:
            KeyError: there is no such agent.
            Busy: it is not the caller's turn (recheck).
        """
        await self._recheck(agent)
        self._look_now.set()
        return self._board.verdict(agent)

    def waiting(self) -> str:
        """Why the registry is not ready; empty when it is (app.Waiting)."""
        left = self._board.waiting
        if not left or self._world.clock() - self._started >= PATIENCE:
            return ""
        return f"{len(left)} of {len(self._loaded.fleet.agents)} agents not probed yet"

    async def run(self) -> None:
        """Follow the file, look for agents, probe them and publish the outcome, until cancelled."""
        discovery = self._world.discovery or self._discovery()
        async with asyncio.TaskGroup() as group:
            schedule = partial(
                Scheduler,
                self._world.check,
                self._report,
                before=self._board.result,
                spawn=group.create_task,
                interval=lambda: self._loaded.fleet.registry.probe_interval,
                clock=self._world.clock,
                sleep=self._world.sleep,
                late=self.metrics.late,
                most=self._world.most,
            )
            inside = schedule()
            group.create_task(self._follow_file(inside))
            group.create_task(self._look(discovery, inside))
            group.create_task(self._look_outside(schedule(concurrency=OUTSIDE, most=OUTSIDE)))
            group.create_task(self._watch_registered())
            group.create_task(self._publish())

    def _discovery(self) -> Discovery:
        given = self._settings.addresses
        if given is None:
            return DnsDiscovery(Resolver(), domain=self._settings.domain, bound=self._world.pulse.timeout)
        return StaticDiscovery(given, lambda agent: addresses.authority(self._loaded.fleet, agent, "local"))

    def _use(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._registrar.use(loaded.fleet)
        self._headcount.retain(loaded.fleet.agents)
        self._members()
        self._registrar.announce()

    def _wanted(self, agent: str) -> int:
        """As processes, there is one of each agent whatever the file says."""
        return self._loaded.wanted(agent) if self._settings.placement == "container" else 1

    def _members(self) -> None:
        """Agents came or went: tell the board, and look for them."""
        registered = [each.agent for each in self._registrar.ledger.all]
        self._board.expect([*self._loaded.fleet.agents, *registered])
        self.metrics.retain(self._board.agents)
        self._look_outside_now.set()

    def _renew(self) -> None:
        """Make the documents anew, then tell who listens."""
        self.catalogue.publish(self._loaded, self._board.verdict, self._registrar.ledger.all)
        fleet = self._loaded.fleet
        if self._targets_of != self._board.moves:
            self._targets_of = self._board.moves
            self._others[prometheus_sd.PATH] = prometheus_sd.document(
                fleet.name, self._board.agents, self._board.endpoints
            )
        self.history.ring()

    def _overview(self, most: int | None = overview.MOST_ROWS) -> overview.Overview:
        return overview.gather(
            self._loaded,
            self._settings.placement,
            self._board,
            self.history,
            now=self._world.now(),
            config_ok=self._follower.ok,
            ledger=self._registrar.ledger,
            most=most,
        )

    def _report(self, agent: str, endpoint: Endpoint, result: Result) -> None:
        self.metrics.observe(result.latency)
        self._board.report(agent, endpoint, result)

    def _changed(self, change: Change) -> None:
        self.history.record(change)
        self.metrics.count(change)
        starting = change.old == "unknown" and self._world.clock() - self._started < STARTING
        log = _log.info if change.new == "ok" or starting else _log.warning
        log(
            "agent state changed",
            agent=change.agent,
            old=change.old,
            new=change.new,
            code=change.reason.code,
            reason=change.reason.message,
        )

    async def _follow_file(self, scheduler: Scheduler) -> None:
        while True:
            await self._world.sleep(POLL_SECONDS)
            try:
                loaded = await asyncio.to_thread(self._follower.poll)
            except Refused as refused:
                problems = [str(problem) for problem in refused.problems]
                defect = refused.__cause__  # ours, where there is one: then the log needs to say where
                _log.error("fleet file refused, the earlier one stays in use", problems=problems, exc_info=defect)
                self.history.ring()
                continue
            if loaded is None:
                continue
            before = set(self._board.agents)
            self._hold_until = self._world.clock() + HOLD
            self._use(loaded)
            scheduler.retain(self._board.agents)
            self._look_now.set()
            after = set(self._board.agents)
            _log.info("fleet file read again", added=sorted(after - before), removed=sorted(before - after))

    async def _look(self, discovery: Discovery, scheduler: Scheduler) -> None:
        def tell(agent: str, sighting: Sighting) -> None:
            if agent in self._loaded.fleet.agents:  # the file may have changed during the sweep
                self._board.sight(agent, self._headcount.check(agent, sighting))
                scheduler.follow(agent, sighting.endpoints)

        while True:
            self._look_now.clear()
            await discovery.sweep(tuple(self._loaded.fleet.agents), tell)
            self._beside(discovery.undeclared)
            await self._until(self._look_now, self._loaded.fleet.registry.probe_interval)

    async def _look_outside(self, scheduler: Scheduler) -> None:
        """The same for agents that registered: apart, so that they cannot delay those of the file."""
        outside = Outside(self._world.resolve or Resolver(), sleep=self._world.sleep, bound=self._world.pulse.timeout)

        def tell(agent: str, url: str, sighting: Sighting) -> None:
            if self._registrar.url(agent) == url:  # it may have moved or left during the sweep
                self._board.sight(agent, sighting)
                scheduler.follow(agent, sighting.endpoints)

        while True:
            self._look_outside_now.clear()
            urls = self._registrar.urls
            scheduler.retain(tuple(urls))
            await outside.sweep(urls, self._registrar.reach, tell)
            await self._until(self._look_outside_now, self._loaded.fleet.registry.probe_interval)

    async def _watch_registered(self) -> None:
        while True:
            await self._registrar.tick()
            await self._world.sleep(TICK)

    def _beside(self, addresses: tuple[str, ...]) -> None:
        for new in set(addresses) - set(self._board.undeclared):
            _log.warning("undeclared address in the fleet's domain", address=new)
        self._board.beside(addresses)

    async def _until(self, event: asyncio.Event, seconds: float) -> None:
        """Return when `event` is set or `seconds` have passed."""
        pause = asyncio.ensure_future(self._world.sleep(seconds))
        wake = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({pause, wake}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            wake.cancel()

    async def _publish(self) -> None:
        """Rebuild the documents after a change; many changes in one turn of the loop make one document.

        Where that takes long, since there are thousands of agents, changes are collected for a while: probing comes
        first, and documents cost a fifth of the time at most.
        """
        while True:
            await self._dirty.wait()
            while self._board.waiting and (left := self._hold_until - self._world.clock()) > 0:
                self._dirty.clear()
                await self._until(self._dirty, left)
            self._dirty.clear()
            began = self._world.clock()
            self._renew()
            took = self._world.clock() - began
            if took > AT_ONCE:
                await self._world.sleep(4 * took)
