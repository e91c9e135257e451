"""The process around the service: one socket, one event loop, one end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import tempfile
from functools import partial
from pathlib import Path

import structlog

from pallas_contract.launch.addresses import Placement
from pallas_contract.launch.program import START_PERIOD
from pallas_contract.probe.probe import probe
from pallas_registry import loops
from pallas_registry.dependencies import PATIENCE, Dependencies
from pallas_registry.fleet_file import FleetReading, FleetWatcher
from pallas_registry.http.app import create_app
from pallas_registry.prebuilt import fast_path, fd_limit
from pallas_registry.probing.kept_lines import SHARE, KeptLines
from pallas_registry.probing.scheduler import MOST, Prober
from pallas_registry.probing.stall_clock import StallClock
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.service import Service
from pallas_registry.settings import Settings
from pallas_service.http.shutdown import HttpServer, Stop, leave_in_time

LINGER = 1
"""Seconds for requests under way when told to stop."""


def patience(placement: Placement, folder: Path) -> float:
    """Return the seconds after which the registry is ready at the latest; `folder` lives as long as a pod.

    In a container it becomes ready after the agents, but only once: one that has crashed is needed at once.
    """
    mark = folder / "pallas-registry-started"
    if placement == "local" or mark.exists():
        return PATIENCE
    with contextlib.suppress(OSError):  # nobody can write there: then it waits each time
        mark.touch()
    return START_PERIOD[placement]


async def serve(
    settings: Settings,
    reading: FleetReading,
    watcher: FleetWatcher,
    *,
    listener: socket.socket,
    store: RegistrationStore,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        Exception: a part of the service failed; a registry that no longer probes must not go on answering.
    """
    stop = Stop()
    stall_clock = StallClock()
    stall_clock.start()
    most = fd_limit.affordable(MOST)
    lines = KeptLines(most // SHARE)
    prober = Prober(
        partial(probe, clock=stall_clock.clock, bound=stall_clock.timeout), clock=stall_clock.clock, lines=lines
    )
    dependencies = Dependencies(
        store=store,
        most=most,
        check=prober.check,
        stall_clock=stall_clock,
        start_period=START_PERIOD[settings.placement],
        patience=patience(settings.placement, Path(tempfile.gettempdir())),
    )
    service = Service(settings, reading, watcher, dependencies)
    server = HttpServer(
        create_app(service.backend(run=secrets.token_hex(4))),
        protocol=fast_path.protocol(service.publisher.ready),
        linger=LINGER,
        proxy_headers=False,  # each request would pay for it; /events shares by the address that connects
    )
    background = asyncio.create_task(service.run())
    host, port = listener.getsockname()[:2]
    structlog.get_logger().info("registry listening", address=host, port=port, agents=len(reading.fleet.agents))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    for task in (background, serving):
        task.add_done_callback(lambda _: stop.asked.set())  # a part that fails ends the others
    await stop.asked.wait()
    if not (background.done() or serving.done()):  # else the exit code is that of a failure
        leave_in_time()
    server.end()
    background.cancel()
    service.monitor.history.close()  # ends the event streams, which would otherwise outlast `LINGER`
    await serving
    await loops.save_uptime(store, service.monitor.uptime)
    with contextlib.suppress(asyncio.CancelledError), contextlib.closing(lines):
        await background
