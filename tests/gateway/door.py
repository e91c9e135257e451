"""A gateway on a port of this machine, and real MCP servers behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
import mcp_types as t
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.routing import Route as Page
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway import console
from pallas_gateway.app import App, Pages
from pallas_gateway.audit.recorder import Audit
from pallas_gateway.confirmation.api import Api
from pallas_gateway.confirmation.confirmations import Confirmations
from pallas_gateway.confirmation.decisions import Decisions
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, nothing
from pallas_gateway.data_plane import upstream
from pallas_gateway.data_plane.checks import Checks
from pallas_gateway.data_plane.plane import Bounds, DataPlane
from pallas_gateway.data_plane.record import Call, Record, Watcher
from pallas_gateway.data_plane.shares import Streams
from pallas_gateway.health import Reachability
from pallas_gateway.keeping import noting
from pallas_gateway.metrics import Metrics
from pallas_gateway.own.admission import Admission
from pallas_gateway.own.execution.executions import ALONE, Options
from pallas_gateway.own.peers.peer import Peer
from pallas_gateway.own.server import OwnTools
from pallas_gateway.own.subscriptions import Subscriptions
from pallas_gateway.policy.policy import Policy
from pallas_gateway.policy.route import Route
from pallas_gateway.tenants import Tenants
from pallas_gateway.watching.board import Board
from pallas_gateway.watching.feed import Feed
from pallas_service.access.gate import Gate
from pallas_service.access.static_tokens import StaticTokens
from pallas_service.access.verifier import Verifier
from pallas_service.http.disconnect import attended
from tests.served import served

MODERN, LEGACY = ERAS = ("2026-07-28", "legacy")
UI = "ui-0123456789abcdef"
PHONE = "phone-0123456789ab"
OWN = "gateway-0123456789"
LIMIT = 1 << 20
FORM = t.ElicitRequestFormParams(message="Which size?", requested_schema={"type": "object", "properties": {}})


class Agent:
    """A real MCP server of the SDK; `heads` are those of all requests, `waits` runs until its caller is gone."""

    def __init__(self, name: str = "scout") -> None:
        self.name = name
        self.heads: list[Headers] = []
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.more = asyncio.Event()

    @asynccontextmanager
    async def app(self) -> AsyncIterator[ASGIApp]:
        server: Server[Any] = Server(self.name, on_call_tool=self.call, on_list_tools=self.tools)
        manager = StreamableHTTPSessionManager(server)
        transport = StreamableHTTPASGIApp(manager)

        class Noting:
            async def __call__(_, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: N805
                self.heads.append(Headers(scope=scope))
                await transport(scope, receive, send)

        async with manager.run():
            yield Starlette(routes=[Page("/mcp", Noting())])

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        schema = {"type": "object"}
        names = ("echo", "steps", "wait", "ask")
        return t.ListToolsResult(tools=[t.Tool(name=name, input_schema=schema) for name in names])

    async def hold(self, ctx: Any) -> None:
        """Answer nothing until the caller is gone: `waiting` is set when this begins, `cancelled` when it ends."""
        self.waiting.set()
        try:
            await attended(ctx.request, asyncio.Event().wait())
        except BaseException:
            self.cancelled.set()
            raise

    async def call(self, ctx: Any, params: t.CallToolRequestParams) -> Any:
        arguments = params.arguments or {}
        text = f"{self.name}: {arguments.get('text', '')}"
        if params.name == "steps":
            await ctx.session.report_progress(1, 2, "one")
            await self.more.wait()
            await ctx.session.report_progress(2, 2, "two")
        elif params.name == "wait":
            await self.hold(ctx)
        elif params.name == "ask":
            answer = await ctx.session.elicit_form(FORM.message, FORM.requested_schema)
            text = answer.action
        return t.CallToolResult(content=[t.TextContent(type="text", text=text)])


class Noted:
    """A watcher that notes everything."""

    def __init__(self) -> None:
        self.begun: list[Call] = []
        self.ended: list[Record] = []
        self.changed = asyncio.Event()

    def begin(self, call: Call) -> None:
        self.begun.append(call)

    def end(self, record: Record) -> None:
        self.ended.append(record)
        self.changed.set()

    async def until(self, count: int) -> list[Record]:
        """Return the records once there are `count` of them."""
        async with asyncio.timeout(120):
            while len(self.ended) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.ended


@dataclass
class Door:
    """The gateway under test; `web` is a plain HTTP client of it."""

    web: httpx.AsyncClient
    noted: Noted
    pages: Pages
    metrics: Metrics
    reachability: Reachability
    plane: DataPlane
    tools: OwnTools | None = None

    @property
    def subscriptions(self) -> Subscriptions:
        assert self.tools is not None
        return self.tools.subscriptions

    def url(self, agent: str = "scout") -> str:
        return f"{self.web.base_url}/agents/{agent}/mcp"

    @asynccontextmanager
    async def client(self, agent: str, era: str, token: str = "", **options: Any) -> AsyncIterator[Client]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as web,
            Client(streamable_http_client(self.url(agent), http_client=web), mode=era, **options) as client,
        ):
            yield client


@asynccontextmanager
async def opened(
    behind: Mapping[str, ASGIApp | str],
    *,
    tokens: Mapping[str, str] | None = None,
    own: str = "",
    limit: int = LIMIT,
    timeout: float = 3600,
    tenants: Tenants | None = None,
    fleet: ResolvedFleet | None = None,
    tools: Mapping[str, str] | None = None,
    streams: Streams | None = None,
    audit: Audit | None = None,
    policy: Policy | None = None,
    gatekeeper: Gatekeeper | None = None,
    options: Options = ALONE,
    store: Confirmations | None = None,
) -> AsyncIterator[Door]:
    """Yield a gateway before the applications or URLs `behind`, by name.

    With `tokens` (caller -> token) it asks for one; `own` is what it presents to agents. With `fleet` and `tenants` it
    has tools of its own, and those of `tools` (tool -> who of `behind` has it); `streams` are the shares of who listens
    there. `audit` records what is passed on, `policy` is what callers may call, `store` has their confirmations.
    `options` are those of `agent.execute`.
    """
    policy = policy or Policy.open()
    routed = policy.is_routed
    board = Board()
    gatekeeper = Gatekeeper(store, noting(nothing, board)) if store else gatekeeper
    decisions = Decisions(store, shown=board.confirmation) if store else None
    noted = Noted()
    metrics = Metrics(behind)
    reachability = Reachability(lambda: audit.problem if audit else "")
    async with AsyncExitStack() as stack:
        routes = {}
        for name, app in behind.items():
            url = app if isinstance(app, str) else f"{(await stack.enter_async_context(served(app))).base_url}/mcp"
            routes[name] = Route(url, own)
        client = await stack.enter_async_context(upstream.session())
        watchers: list[Watcher] = [metrics, reachability, noted, board, *([audit] if audit else [])]
        checks = Checks(policy, audit, gatekeeper, board)
        bounds = Bounds(limit, timeout)
        plane = DataPlane(
            routes, client, bounds, tenants=tenants, checks=checks, watchers=watchers, listens=metrics.listens
        )
        pages = Pages(
            metrics,
            reachability,
            {"name": "gateway"},
            audit=audit,
            may_see=lambda caller: not tokens or policy.is_operator(caller),
        )
        gate = Gate(Verifier(StaticTokens(tokens)), "http://127.0.0.1") if tokens else None
        tools_app: ASGIApp | None = None
        own_tools = None
        if fleet and tenants:
            admission = Admission(tenants, timeout, watchers, checks)
            peers = {tool: Peer("service", host, routes[host]) for tool, host in (tools or {}).items()}
            own_tools = OwnTools(
                fleet,
                routes,
                client,
                admission,
                streams=streams or plane.streams,
                services=peers,
                options=options,
                trace_id=lambda: "ab" * 16,
            )
            own_tools.ask_approvers(decisions)
            tools_app = await stack.enter_async_context(own_tools.served(plane.bodies, tenants))
        feed = Feed(board, policy, tenants or Tenants(), plane.streams, confirmations=decisions, pause=0.01)
        page = console.agents(fleet, routes, policy.may_ask, feed) if fleet else None
        api = Api(decisions).app() if decisions else None
        app = App(plane, pages, ["127.0.0.1:*"], gate, own=tools_app, console=page, routed=routed, confirmations=api)
        web = await stack.enter_async_context(served(app))
        try:
            yield Door(web, noted, pages, metrics, reachability, plane, own_tools)
        finally:
            feed.close()


def text(result: Any) -> str:
    """Return the text of a tool's result."""
    return str(result.content[0].text)
