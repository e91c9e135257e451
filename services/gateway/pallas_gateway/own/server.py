"""`/mcp` of the gateway on the SDK's low-level server: `ask_agent`, the agents as resources, and prompts (seed 002)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import aiohttp
import mcp_types as t
import structlog
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway.data_plane import message
from pallas_gateway.data_plane.plane import TIMEOUT, Route, digest
from pallas_gateway.data_plane.record import Call, Outcome, Record, Watcher
from pallas_gateway.own import agentlets, prompts, question
from pallas_gateway.own.agentlets import Agentlets
from pallas_gateway.own.entrance import MAX_BODY
from pallas_gateway.own.failures import Failed, invalid, invalid_arguments
from pallas_gateway.own.question import Question
from pallas_gateway.tenants import Allowance, Exceeded, Tenants
from pallas_service.access.caller import Caller, caller
from pallas_service.http.disconnect import HungUp, attended

Context = ServerRequestContext[Any, Any]
log = structlog.get_logger(__name__)

ASK = "ask_agent"
_DEEPEST = 100
"""Objects and arrays in each other of an answer that is sent as an object."""
_JSON = "application/json"
_TRACE = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class AskAgent(BaseModel):
    """Arguments of `ask_agent` (seed 002, Available Tools)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    agent_uri: str = Field(min_length=1, max_length=200, description="Agent identifier, as system-agents://list has it")
    tenant_id: str = Field(min_length=1, max_length=64, description="Tenant scope: that of the token")
    prompt: str = Field(min_length=1, description="User prompt for the agent")
    user_id: str | None = Field(default=None, max_length=256, description="User identifier")
    session_id: str | None = Field(default=None, max_length=256, description="Session to be continued")
    model: str | None = Field(default=None, max_length=200, description="Not supported: an agent has its model")


_SCHEMA = AskAgent.model_json_schema()
_TOOL = t.Tool(name=ASK, description="Execute an agent-let with a user prompt.", input_schema=_SCHEMA)


class OwnTools:
    """Handlers of the gateway's own server.

    `routes` are the agents behind it by host name; a request has `timeout` seconds, or those of its tenant where they
    are fewer.
    """

    def __init__(
        self,
        fleet: ResolvedFleet,
        routes: Mapping[str, Route],
        client: aiohttp.ClientSession,
        tenants: Tenants,
        *,
        timeout: float = TIMEOUT,
        watchers: Collection[Watcher] = (),
        trace_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._version = fleet.version
        self._routes = routes
        self._client = client
        self._tenants = tenants
        self._timeout = timeout
        self._agentlets = Agentlets(fleet, routes)
        self._watchers = tuple(watchers)
        self._trace_id = trace_id

    def manager(self) -> StreamableHTTPSessionManager:
        """Return the transport of both eras, without sessions, which answers in JSON."""
        server: Server[Any] = Server(
            names.GATEWAY,
            version=self._version,
            get_tool_input_schema={ASK: _SCHEMA}.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )
        return StreamableHTTPSessionManager(
            server,
            json_response=True,
            stateless=True,
            session_idle_timeout=None,
            max_sessions=None,
            max_request_body_size=MAX_BODY,
        )

    async def _list_tools(self, ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[_TOOL])

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

        return await self._counted(ctx, "prompts/get", params.name, got)

    async def _read_resource(self, ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        async def read() -> t.ReadResourceResult:
            try:
                text = self._agentlets.read(params.uri)
            except KeyError:
                raise invalid("uri", "Unknown resource") from None
            contents = t.TextResourceContents(uri=params.uri, mime_type=_JSON, text=text)
            return t.ReadResourceResult(contents=[contents])

        return await self._counted(ctx, "resources/read", params.uri, read)

    async def _call_tool(self, ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        if params.name != ASK:
            raise invalid("name", f"there is only {ASK}", f"Unknown tool: {params.name[:80]}")
        try:
            arguments = AskAgent.model_validate(params.arguments or {})
        except ValidationError as error:
            raise invalid_arguments(error) from None
        if arguments.model is not None:
            raise invalid("model", "no agent takes another model for a call")

        async def asked() -> t.CallToolResult:
            allowance = self._allowance(caller(ctx.request), arguments.tenant_id)
            host = self._agentlets.find(arguments.agent_uri)
            return await self._ask(ctx, arguments, allowance, host)

        # what becomes of the call is said of the agent, where it is one
        agent = names.slug(arguments.agent_uri.removeprefix(agentlets.SCHEME))
        return await self._counted(
            ctx,
            "tools/call",
            ASK,
            asked,
            tenant=arguments.tenant_id,
            agent=agent if agent in self._routes else names.GATEWAY,
        )

    async def _ask(self, ctx: Context, arguments: AskAgent, allowance: Allowance, host: str) -> t.CallToolResult:
        verified = caller(ctx.request)
        trace = self._trace(ctx)
        handle = _handle(allowance.name, arguments) if arguments.session_id else ""
        about = Question(arguments.prompt, handle, self._seconds(allowance))
        answer = await question.ask(
            self._client,
            host,
            self._routes[host],
            about,
            caller=digest(verified),
            traceparent=f"00-{trace}-{self._trace_id()[:16]}-01",
        )
        status = "error" if answer.failed else "success"
        body = {"status": status, "response": _response(answer.text), "trace_id": trace, "model": None}
        content = t.TextContent(type="text", text=json.dumps(body))
        return t.CallToolResult(content=[content], structured_content=body, is_error=answer.failed)

    def _seconds(self, allowance: Allowance) -> float:
        return min(self._timeout, allowance.timeout)

    def _trace(self, ctx: Context) -> str:
        header = ctx.request.headers.get("traceparent", "") if ctx.request is not None else ""
        match = _TRACE.fullmatch(header)
        return match[1] if match else self._trace_id()

    def _allowance(self, verified: Caller | None, tenant: str) -> Allowance:
        """Return the allowance of `tenant`, which must be that of the verified caller where there is one."""
        allowance = self._tenants.of(verified) if verified else self._tenants.named(tenant)
        if allowance is None or allowance.name != tenant:
            raise Failed("unknown_tenant", f"Tenant not found: {tenant}")
        return allowance

    async def _counted[T](
        self,
        ctx: Context,
        method: str,
        name: str,
        work: Callable[[], Awaitable[T]],
        *,
        tenant: str = "",
        agent: str = names.GATEWAY,
    ) -> T:
        """Return the result of `work` within the limits of the caller's tenant; watchers are told of it."""
        verified = caller(ctx.request)
        allowance = self._tenants.of(verified) if verified else self._tenants.named(tenant)
        call = Call(
            agent,
            verified.name if verified else "",
            method,
            name,
            tenant=allowance.name if allowance else "",
        )
        started = time.perf_counter()
        outcome: Outcome = "hung_up"
        for watcher in self._watchers:
            watcher.begin(call)
        try:
            result = await attended(ctx.request, self._limited(allowance, verified, tenant, work))
            outcome = "answered"
            return result
        except Failed as failure:
            outcome = failure.reason
            raise
        except MCPError as error:
            outcome = "hung_up" if isinstance(error, HungUp) else "malformed"
            raise
        except Exception:
            outcome = "failed"
            log.exception("own tool failed", method=method, agent=agent)
            # its text is about our insides, and for the log
            raise Failed("failed", "the gateway could not answer") from None
        finally:
            record = Record(call, outcome, 200, time.perf_counter() - started)
            for watcher in self._watchers:
                watcher.end(record)

    async def _limited[T](
        self, allowance: Allowance | None, verified: Caller | None, tenant: str, work: Callable[[], Awaitable[T]]
    ) -> T:
        if allowance is None:
            if verified or tenant:
                raise Failed("unknown_tenant", f"Tenant not found: {tenant}" if tenant else "Tenant not found")
            return await work()  # nobody is asked for a token, and lists are the same for all
        seconds = self._seconds(allowance)
        try:
            with allowance.used():
                async with asyncio.timeout(seconds) as deadline:
                    return await work()
        except Exceeded as error:
            raise Failed(error.reason, f"Rate limit exceeded: {error}", error.retry_after) from None
        except TimeoutError:
            if not deadline.expired():
                raise
            raise Failed("timeout", f"Timeout: no answer in {seconds:g} s") from None


def _handle(tenant: str, arguments: AskAgent) -> str:
    """Return the agent's handle of a conversation: another one for each tenant and user."""
    parts = json.dumps([tenant, arguments.user_id, arguments.session_id])
    return hashlib.sha256(parts.encode()).hexdigest()


def _response(text: str) -> dict[str, Any]:
    """Return the answer of an agent as an object: its own where it is one in JSON, which can be sent as that."""
    if text.lstrip()[:1] == "{" and not message.has_more_values(text.encode(), message.MOST_VALUES):
        with suppress(ValueError, RecursionError):
            body = json.loads(text)
            # no NaN, which no JSON has, and no half of a surrogate pair, which has no form in UTF-8
            json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
            if _is_flat(body):
                return dict(body)
    return {"answer": text}


def _is_flat(body: Any) -> bool:
    """Return whether nothing stands deeper than `_DEEPEST` in it: what writes the answer does not follow for ever."""
    layer = [body]
    for _ in range(_DEEPEST):
        layer = [value for parent in layer for value in (parent.values() if isinstance(parent, dict) else parent)]
        layer = [value for value in layer if isinstance(value, dict | list)]
    return not layer
