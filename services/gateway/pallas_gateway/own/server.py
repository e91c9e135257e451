"""The gateway as an MCP server at `/mcp`, of both eras, whose clients know nothing but seed 002."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import mcp_types as t
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway.confirmation.decisions import Decisions
from pallas_gateway.data_plane.shares import Streams
from pallas_gateway.own import prompts, resources
from pallas_gateway.own.admission import Admission, Asked, Context
from pallas_gateway.own.agents.agentlets import Agentlets
from pallas_gateway.own.agents.user_agents import UserAgents
from pallas_gateway.own.entrance import MAX_BODY, STREAMED, Entrance
from pallas_gateway.own.execution.executions import ALONE, Executions, Options
from pallas_gateway.own.execution.steps import Steps
from pallas_gateway.own.peers.peer import Peer, Progress
from pallas_gateway.own.resources import Resources
from pallas_gateway.own.subscriptions import Subscriptions
from pallas_gateway.own.tools import batch
from pallas_gateway.own.tools.arguments import CREATE
from pallas_gateway.own.tools.batch import Batches, BatchParams
from pallas_gateway.own.tools.calls import Calls
from pallas_gateway.own.tools.decide import Decide
from pallas_gateway.own.tracing import NewId, Tracing, new_id
from pallas_gateway.policy.route import Route
from pallas_gateway.tenants import Tenants
from pallas_service.access.caller import caller
from pallas_service.http.bodies import BodyBudget


class OwnTools:
    """Handlers of the gateway's own server.

    `routes` are the agents behind it by host name, `services` those that have a tool of it, by the tool's name,
    `streams` the shares of what is only listened to. `options` are those of
    `agent.execute`.
    """

    def __init__(
        self,
        fleet: ResolvedFleet,
        routes: Mapping[str, Route],
        client: aiohttp.ClientSession,
        admission: Admission,
        *,
        streams: Streams,
        services: Mapping[str, Peer] | None = None,
        options: Options = ALONE,
        trace_id: NewId = new_id,
    ) -> None:
        self._version = fleet.version
        self._admission = admission
        services = services or {}
        agentlets = Agentlets(fleet, routes)
        users = UserAgents(client, services.get(CREATE))
        tracing = Tracing(trace_id)
        self.subscriptions = Subscriptions(admission, streams)
        self._resources = Resources(admission, tracing, agentlets, users)
        agents = {host: Peer("agent", host, route) for host, route in routes.items()}
        steps = Steps(
            client, tracing, admission.permission, agents=agents, agentlets=agentlets, strangers=options.strangers
        )
        self._executions = Executions(admission, steps, options.journal)
        self._calls = Calls(
            client,
            admission,
            tracing,
            agents=agents,
            services=services,
            agentlets=agentlets,
            users=users,
            subscriptions=self.subscriptions,
        )
        self._batches = Batches(self._calls)
        self._decide = Decide(admission.permission.policy)

    def ask_approvers(self, decisions: Decisions | None) -> None:
        """Have those who may confirm decide in their own clients too, where something is to be confirmed."""
        self._decide = Decide(self._admission.permission.policy, decisions)

    @asynccontextmanager
    async def served(self, bodies: BodyBudget, tenants: Tenants) -> AsyncIterator[Entrance]:
        """Yield the ASGI application of `/mcp`."""
        plain = self._manager(streaming=False)
        streaming = self._manager(streaming=True)
        async with plain.run(), streaming.run(), self._executions.running():
            transports = StreamableHTTPASGIApp(plain), StreamableHTTPASGIApp(streaming)
            yield Entrance(*transports, self._executions.serve, bodies=bodies, tenants=tenants)

    def end(self) -> None:
        """End what is only listened to, and begin nothing more by itself."""
        self.subscriptions.close()
        self._executions.end()

    def _manager(self, *, streaming: bool) -> StreamableHTTPSessionManager:
        """Return a transport of both eras, without sessions, which answers in JSON, or with `streaming` in events."""
        server: Server[Any] = Server(
            names.GATEWAY,
            version=self._version,
            get_tool_input_schema=self._calls.tools.schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._resources.read,
            on_subscriptions_listen=self.subscriptions.listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        server.add_request_handler(batch.METHOD, BatchParams, self._batches.call)
        return StreamableHTTPSessionManager(
            server,
            json_response=not streaming,
            stateless=True,
            session_idle_timeout=None,
            max_sessions=None,
            max_request_body_size=MAX_BODY,
        )

    async def _list_tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        verified = caller(ctx.request)
        return t.ListToolsResult(tools=[*self._calls.listed(verified), *self._decide.listed(verified)])

    async def _list_resources(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=resources.RESOURCES)

    async def _list_templates(
        self, ctx: Context, params: t.PaginatedRequestParams | None
    ) -> t.ListResourceTemplatesResult:
        return t.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def _list_prompts(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
        return t.ListPromptsResult(prompts=prompts.PROMPTS)

    async def _get_prompt(self, ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        async def got() -> t.GetPromptResult:
            return prompts.get(params.name, params.arguments or {})

        return await self._admission.counted(
            ctx.request, Asked("prompts/get", params.name, arguments=params.arguments), got, common=True
        )

    async def _call_tool(
        self, ctx: Context, params: t.CallToolRequestParams
    ) -> t.CallToolResult | t.InputRequiredResult:
        if decided := await self._decide.call(ctx, params):
            return decided
        return await self._calls.call(ctx, params.name, params.arguments or {}, _progress(ctx))


def _progress(ctx: Context) -> Progress | None:
    """Return what passes progress on to the client; None where it has not asked, or cannot be told."""
    streamed = ctx.request is not None and ctx.request.scope.get(STREAMED)
    return ctx.session.report_progress if streamed else None
