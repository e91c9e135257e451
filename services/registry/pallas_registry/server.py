"""One socket, one event loop, one way to stop: the process around the service."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial

import structlog
import uvicorn

from pallas_contract.probe.probe import probe
from pallas_registry.fleet_file import Follower, Loaded
from pallas_registry.http.app import create_app
from pallas_registry.probing.scheduler import MOST, Prober
from pallas_registry.probing.stall_clock import Pulse
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.service import Service, World
from pallas_registry.serving import fast_path, fd_limit
from pallas_registry.settings import Settings

GRACE = 1
"""Seconds for requests under way when told to stop."""


class _Server(uvicorn.Server):
    """uvicorn that, on a signal, stops the background too and does not raise the signal again: a wanted end is 0.

    `close` ends the event streams, which would otherwise outlast the grace.
    """

    def __init__(self, config: uvicorn.Config, background: asyncio.Task[None], close: Callable[[], None]) -> None:
        super().__init__(config)
        self._background, self._close = background, close
        background.add_done_callback(lambda _: self.stop())

    def stop(self) -> None:
        self.should_exit = True
        self._background.cancel()
        self._close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        yield


async def serve(
    settings: Settings, loaded: Loaded, follower: Follower, listener: socket.socket, store: RegistrationStore
) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        Exception: a part of the service failed; a registry that no longer probes must not go on answering.
    """
    pulse = Pulse()
    pulse.start()
    prober = Prober(partial(probe, clock=pulse.clock, bound=pulse.timeout), clock=pulse.clock)
    world = World(store=store, most=fd_limit.affordable(MOST), check=prober.check, pulse=pulse)
    service = Service(settings, loaded, follower, world)
    app = create_app(service.shown(run=secrets.token_hex(4)))
    config = uvicorn.Config(
        app,
        http=fast_path.protocol(service.kept),
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here asks who the client is, and each request would pay for it
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )
    background = asyncio.create_task(service.run())
    host, port = listener.getsockname()[:2]
    structlog.get_logger().info("registry listening", address=host, port=port, agents=len(loaded.fleet.agents))
    await _Server(config, background, service.history.close).serve(sockets=[listener])
    with contextlib.suppress(asyncio.CancelledError):
        await background
