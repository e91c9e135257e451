"""The gateway as a process: from its settings to sockets, to the end."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from contextlib import AbstractContextManager, AsyncExitStack

import aiohttp
import structlog
import uvloop

from pallas_contract import names
from pallas_contract.launch import credentials
from pallas_gateway import console
from pallas_gateway.app import App, Pages
from pallas_gateway.application import files
from pallas_gateway.call_log import CallLog
from pallas_gateway.data_plane import upstream
from pallas_gateway.data_plane.checks import Checks
from pallas_gateway.data_plane.plane import Bounds, DataPlane
from pallas_gateway.data_plane.record import Watcher
from pallas_gateway.health import Reachability
from pallas_gateway.keeping import Keeping
from pallas_gateway.metrics import Metrics
from pallas_gateway.own.admission import Admission
from pallas_gateway.own.execution.executions import Options
from pallas_gateway.own.execution.steps import Strangers
from pallas_gateway.own.peers import registered
from pallas_gateway.own.peers.peer import Peer
from pallas_gateway.own.peers.registered import Directory, Registered
from pallas_gateway.own.server import OwnTools
from pallas_gateway.policy.policy import Policy
from pallas_gateway.settings import Settings
from pallas_gateway.tenants import Tenants
from pallas_gateway.watching.feed import Feed
from pallas_service import telemetry
from pallas_service.access.arrangement import Arrangement, arrange
from pallas_service.http import sockets as http_sockets
from pallas_service.http.connections import most_connections
from pallas_service.http.reach import Reach
from pallas_service.http.shutdown import REST, HttpServer, Stop, background, drain, leave_in_time

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        sockets.CannotListen: the address is in use or not ours.
        CannotStore: the audit, or confirmations, cannot be kept.
    """
    fd = os.environ.pop(names.ENV_LISTEN_FD, "")
    policy = Policy(settings.gateway, settings.fleet.agents)
    keeping = Keeping(settings, policy)
    with (
        http_sockets.bound(settings.host, settings.port, settings.listen_on, fd) as listeners,
        telemetry.recording(lambda: _exporting(settings), os.environ),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(settings, listeners, policy, keeping))
        leave_in_time(REST)


def _exporting(settings: Settings) -> AbstractContextManager[None]:
    from pallas_gateway.telemetry import export  # noqa: PLC0415 - the SDK of OpenTelemetry, for who has a collector

    return export.exporting(settings.fleet)


def guard(settings: Settings) -> Arrangement:
    """Return the gate in front of the agents, as the fleet's `access` and the gateway's own ask for it."""
    access = settings.gateway.access
    resource = credentials.gateway_resource(settings.fleet, settings.placement)
    audience = (access.jwt.audience if access.jwt else None) or resource
    return arrange(access, settings.tokens, resource=resource, audience=audience, keys_file=settings.keys_file)


async def _serve(settings: Settings, listeners: list[socket.socket], policy: Policy, keeping: Keeping) -> None:
    board = keeping.board
    stop = Stop()
    arrangement = guard(settings)
    services = {tool: Peer("service", host, route) for tool, (host, route) in settings.tools.items()}
    members = {**settings.through, **settings.routes}
    metrics = Metrics([*members, *settings.registered, *(service.host for service in services.values()), names.GATEWAY])
    reachability = Reachability(lambda: "; ".join(filter(None, (arrangement.problem, keeping.problem))))
    identity = {"name": names.GATEWAY, "version": settings.fleet.version}
    pages = Pages(
        metrics,
        reachability,
        identity,
        audit=keeping.audit,
        may_see=lambda caller: arrangement.gate is None or policy.is_operator(caller),
        application=files.routes(settings.app, settings.withheld) if settings.app else (),
    )
    checks = Checks(policy, keeping.audit, keeping.gatekeeper, board)
    tenants = Tenants(settings.gateway.tenants, shared=keeping.counters)
    watchers: list[Watcher] = [metrics, reachability, CallLog()]
    async with AsyncExitStack() as stack:
        stack.push_async_callback(keeping.stop)
        jobs = [*arrangement.background(), *keeping.start(metrics)]
        watchers += [watcher for watcher in (keeping.audit, board) if watcher]
        client = await stack.enter_async_context(upstream.session())
        await stack.enter_async_context(background(*jobs))
        streams = max(1, most_connections() // 4)  # of one caller or tenant, so that others come in
        bounds = Bounds(settings.max_body, settings.gateway.timeout, streams)
        plane = DataPlane(
            members, client, bounds, tenants=tenants, checks=checks, watchers=watchers, listens=metrics.listens
        )
        tools = own = None
        if settings.gateway.tenants:
            admission = Admission(tenants, settings.gateway.timeout, watchers, checks)
            tools = OwnTools(
                settings.fleet,
                settings.routes,
                client,
                admission,
                streams=plane.streams,
                services=services,
                options=Options(keeping.journal, await _strangers(settings, client, stack)),
            )
            tools.ask_approvers(keeping.decisions)
            own = await stack.enter_async_context(tools.served(plane.bodies, tenants))
        feed = Feed(board, policy, tenants, plane.streams, confirmations=keeping.decisions) if board else None
        page = console.agents(settings.fleet, settings.routes, policy.may_ask, feed) if feed else None
        app = App(
            plane,
            pages,
            settings.allowed_hosts,
            arrangement.gate,
            own=own,
            console=page,
            confirmations=keeping.api,
            routed=policy.is_routed,
        )
        server = HttpServer(app, proxy_headers=False)  # each call would pay for it, and nothing asks for the address
        for listener in listeners:
            http_sockets.start(listener)
        gc.collect()
        gc.freeze()  # what is there stays, and no call waits for a look through it
        pages.ready = True
        log.info("ready", address=f"{settings.host}:{settings.port}", agents=sorted(settings.routes))
        serving = asyncio.create_task(server.serve(listeners))
        await stop.asked.wait()
        pages.ready = False
        if tools:
            tools.end()
        if feed:
            feed.close()
        await drain(metrics.idle, stop.insisted, _leave)
        server.end()
        await serving


async def _strangers(settings: Settings, client: aiohttp.ClientSession, stack: AsyncExitStack) -> Strangers | None:
    """Return the agents outside of the file that may be called, where there are any."""
    registration = settings.fleet.registry.registration
    if registration is None or not settings.registered:
        return None
    reach = Reach(registration.reach)
    outside = await stack.enter_async_context(registered.client(reach))
    directory = Directory(settings.registry, settings.registered)
    return Strangers(Registered(directory, reach, client), outside)


async def _leave() -> None:
    """Begin the end. Calls that are still open are left to the server, which cuts their connections."""
    leave_in_time()
