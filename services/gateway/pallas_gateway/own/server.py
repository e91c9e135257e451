"""`/mcp` of the gateway on the SDK's low-level server: the tools, resources and prompts of seed 002."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import mcp_types as t
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway.data_plane.plane import Route, digest
from pallas_gateway.own import agentlets, peer, prompts, results, user_agents
from pallas_gateway.own.admission import Admission, Context
from pallas_gateway.own.agentlets import Agentlets
from pallas_gateway.own.arguments import (
    ASK,
    BATCH,
    CREATE,
    Arguments,
    AskAgent,
    BatchedCall,
    BatchParams,
    CreateAgent,
    Tools,
    check_schema,
)
from pallas_gateway.own.entrance import MAX_BODY, STREAMED, Entrance
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peer import Peer, Progress, ToolCall
from pallas_gateway.own.user_agents import UserAgents
from pallas_gateway.tenants import Allowance, Tenants
from pallas_service.access.caller import caller
from pallas_service.http.bodies import BodyBudget
from pallas_service.http.disconnect import HungUp

AT_ONCE = 5
"""Calls of a batch that are under way at once."""
_JSON = "application/json"
_TRACE = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class OwnTools:
    """Handlers of the gateway's own server.

    `routes` are the agents behind it by host name, `services` those that have a tool of it, by the tool's name.
    """

    def __init__(
        self,
        fleet: ResolvedFleet,
        routes: Mapping[str, Route],
        client: aiohttp.ClientSession,
        admission: Admission,
        *,
        services: Mapping[str, Peer] | None = None,
        trace_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._version = fleet.version
        self._agents = {host: Peer("agent", host, route) for host, route in routes.items()}
        self._services = services or {}
        self._client = client
        self._admission = admission
        self._agentlets = Agentlets(fleet, routes)
        self._users = UserAgents(client, self._services.get(CREATE))
        self._tools = Tools((ASK, *sorted(self._services)))
        self._trace_id = trace_id

    @asynccontextmanager
    async def served(self, bodies: BodyBudget, tenants: Tenants) -> AsyncIterator[Entrance]:
        """Yield the ASGI application of `/mcp`."""
        plain = self._manager(streaming=False)
        streaming = self._manager(streaming=True)
        async with plain.run(), streaming.run():
            transports = StreamableHTTPASGIApp(plain), StreamableHTTPASGIApp(streaming)
            yield Entrance(*transports, bodies, tenants)

    def _manager(self, *, streaming: bool) -> StreamableHTTPSessionManager:
        """Return a transport of both eras, without sessions, which answers in JSON, or with `streaming` in events."""
        server: Server[Any] = Server(
            names.GATEWAY,
            version=self._version,
            get_tool_input_schema=self._tools.schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        server.add_request_handler(BATCH, BatchParams, self._call_batch)
        return StreamableHTTPSessionManager(
            server,
            json_response=not streaming,
            stateless=True,
            session_idle_timeout=None,
            max_sessions=None,
            max_request_body_size=MAX_BODY,
        )

    async def _list_tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        return t.ListToolsResult(tools=self._tools.listed())

    async def _list_resources(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
        system = t.Resource(
            uri=agentlets.SYSTEM, name="System Agents", description="All agents behind this gateway", mime_type=_JSON
        )
        mine = t.Resource(
            uri=agentlets.MINE, name="User Agents", description="Agents that users have made", mime_type=_JSON
        )
        return t.ListResourcesResult(resources=[system, mine])

    async def _list_templates(
        self, ctx: Context, params: t.PaginatedRequestParams | None
    ) -> t.ListResourceTemplatesResult:
        template = t.ResourceTemplate(
            uri_template=f"{agentlets.SCHEME}{{uri}}",
            name="Specific Agent",
            description="Schema of one agent",
            mime_type=_JSON,
        )
        return t.ListResourceTemplatesResult(resource_templates=[template])

    async def _list_prompts(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
        return t.ListPromptsResult(prompts=prompts.PROMPTS)

    async def _get_prompt(self, ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        async def got() -> t.GetPromptResult:
            return prompts.get(params.name, params.arguments or {})

        return await self._admission.counted(ctx, "prompts/get", params.name, got)

    async def _read_resource(self, ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        uri = params.uri
        users = uri == agentlets.MINE or (uri.startswith(agentlets.SCHEME) and user_agents.is_users(uri))
        tenant = self._admission.tenant(caller(ctx.request)) if users else ""

        async def read() -> t.ReadResourceResult:
            text = await self._read_users(ctx, uri, tenant) if users else self._read_systems(uri)
            contents = t.TextResourceContents(uri=params.uri, mime_type=_JSON, text=text)
            return t.ReadResourceResult(contents=[contents])

        agent = self._users.host if users else names.GATEWAY
        return await self._admission.counted(ctx, "resources/read", uri, read, tenant=tenant, agent=agent)

    def _read_systems(self, uri: str) -> str:
        try:
            return self._agentlets.read(uri)
        except KeyError:
            raise invalid("uri", "Unknown resource") from None

    async def _read_users(self, ctx: Context, uri: str, tenant: str) -> str:
        seconds = self._admission.seconds(self._admission.allowance(caller(ctx.request), tenant)) if tenant else 0.0
        traceparent = self._traceparent(self._trace(ctx))
        return await self._users.read(uri, tenant, seconds=seconds, traceparent=traceparent)

    async def _call_tool(self, ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        return await self._call(ctx, params.name, params.arguments or {}, _progress(ctx))

    async def _call_batch(self, ctx: Context, params: BatchParams) -> dict[str, Any]:
        """Return what each call would have answered by itself, in their order: `result`, or `error`."""
        some = asyncio.Semaphore(AT_ONCE)
        room = peer.MOST

        async def outcome(call: BatchedCall) -> dict[str, Any]:
            nonlocal room
            try:
                async with some:
                    result = await self._call(ctx, call.name, call.arguments or {}, None)
                room -= results.size(result)
                if room < 0:  # all are in memory until the last one is there
                    raise Failed("failed", f"the answers of a batch may have {peer.MOST} bytes together")
            except HungUp:
                raise
            except MCPError as error:
                return {"error": error.error.model_dump(mode="json", by_alias=True, exclude_none=True)}
            return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}

        return {"results": await asyncio.gather(*map(outcome, params.calls))}

    async def _call(
        self, ctx: Context, tool: str, written: Mapping[str, Any], progress: Progress | None
    ) -> t.CallToolResult:
        read = self._tools.read(tool, written)

        async def called() -> t.CallToolResult:
            allowance = self._admission.allowance(caller(ctx.request), read.tenant_id)
            if isinstance(read, AskAgent):
                return await self._ask(ctx, read, allowance, progress)
            return await self._pass_on(ctx, tool, read, allowance=allowance, progress=progress)

        return await self._admission.counted(
            ctx, "tools/call", tool, called, tenant=read.tenant_id, agent=self._named(tool, read)
        )

    def _named(self, tool: str, read: Arguments) -> str:
        """Return the host name of what a call is about, where it is one: what becomes of the call is said of it."""
        if not isinstance(read, AskAgent):
            return self._services[tool].host
        if user_agents.is_users(read.agent_uri):
            return self._users.host
        host = names.slug(read.agent_uri.removeprefix(agentlets.SCHEME))
        return host if host in self._agents else names.GATEWAY

    async def _ask(
        self, ctx: Context, read: AskAgent, allowance: Allowance, progress: Progress | None
    ) -> t.CallToolResult:
        trace = self._trace(ctx)
        traceparent = self._traceparent(trace)
        handle = _handle(allowance.name, read) if read.session_id else ""
        seconds = self._admission.seconds(allowance)
        if user_agents.is_users(read.agent_uri):
            answer = await self._users.ask(read, handle, seconds=seconds, traceparent=traceparent, progress=progress)
            return results.of_agent(answer, trace)
        agent = self._agents[self._agentlets.find(read.agent_uri)]
        arguments = {"message": read.prompt} | ({"session_id": handle} if handle else {})
        call = ToolCall("send_message", arguments, seconds, traceparent, caller=digest(caller(ctx.request)))
        return results.of_agent(await peer.ask(self._client, agent, call, progress), trace)

    async def _pass_on(
        self, ctx: Context, tool: str, read: Arguments, *, allowance: Allowance, progress: Progress | None
    ) -> t.CallToolResult:
        """Return the result of a tool that a service has; it gets the arguments as they were checked."""
        service = self._services[tool]
        if isinstance(read, CreateAgent):
            await asyncio.to_thread(check_schema, read.output_schema)
        call = ToolCall(
            tool,
            read.model_dump(exclude_none=True),
            self._admission.seconds(allowance),
            self._traceparent(self._trace(ctx)),
        )
        return results.of_service(await peer.ask(self._client, service, call, progress), read, service)

    def _trace(self, ctx: Context) -> str:
        header = ctx.request.headers.get("traceparent", "") if ctx.request is not None else ""
        match = _TRACE.fullmatch(header)
        return match[1] if match else self._trace_id()

    def _traceparent(self, trace: str) -> str:
        return f"00-{trace}-{self._trace_id()[:16]}-01"


def _progress(ctx: Context) -> Progress | None:
    """Return what passes progress on to the client; None where it has not asked, or cannot be told."""
    streamed = ctx.request is not None and ctx.request.scope.get(STREAMED)
    return ctx.session.report_progress if streamed else None


def _handle(tenant: str, read: AskAgent) -> str:
    """Return the agent's handle of a conversation: another one for each tenant and user."""
    parts = json.dumps([tenant, read.user_id, read.session_id])
    return hashlib.sha256(parts.encode()).hexdigest()
