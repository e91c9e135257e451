"""One call of a tool: admitted, passed on to the agent or service that it is about, answered as seed 002 has it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import mcp_types as t

from pallas_contract import names
from pallas_gateway.data_plane.plane import digest
from pallas_gateway.own.admission import Admission, Asked, Context
from pallas_gateway.own.agents import agentlets, user_agents
from pallas_gateway.own.agents.agentlets import Agentlets
from pallas_gateway.own.agents.user_agents import UserAgents
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peers import peer
from pallas_gateway.own.peers.peer import Answer, Peer, Progress, ToolCall
from pallas_gateway.own.subscriptions import Subscriptions
from pallas_gateway.own.tools import results
from pallas_gateway.own.tools.arguments import AGENT, ASK, CREATE, Arguments, AskAgent, CreateAgent, Tools, check_schema
from pallas_gateway.own.tracing import Tracing
from pallas_gateway.policy.policy import SEND
from pallas_gateway.telemetry import spans
from pallas_gateway.tenants import Allowance
from pallas_service.access.caller import Caller, caller


class Calls:
    """Calls of the gateway's tools.

    `agents` are those behind it by host name, `services` those that have a tool of it, by the tool's name.
    """

    def __init__(
        self,
        client: aiohttp.ClientSession,
        admission: Admission,
        tracing: Tracing,
        *,
        agents: Mapping[str, Peer],
        services: Mapping[str, Peer],
        agentlets: Agentlets,
        users: UserAgents,
        subscriptions: Subscriptions,
    ) -> None:
        self._client = client
        self._admission = admission
        self._tracing = tracing
        self._permission = admission.permission
        self._agents = agents
        self._services = services
        self._agentlets = agentlets
        self._users = users
        self._subscriptions = subscriptions
        self.tools = Tools((ASK, *sorted(services)), admission.permission.policy.is_routed)

    def listed(self, verified: Caller | None) -> list[t.Tool]:
        """Return the tools that a caller may call with some arguments."""
        policy = self._permission.policy

        def shown(tool: str) -> bool:
            if tool != ASK:
                return policy.may(verified, self._services[tool].host, tool)
            return any(policy.may_ask(verified, host) for host in self._agents) or (
                CREATE in self._services and policy.may(verified, self._users.host, ASK)
            )

        return self.tools.listed(shown)

    async def call(
        self, ctx: Context, tool: str, written: Mapping[str, Any], progress: Progress | None
    ) -> t.CallToolResult:
        """Return the result of `tool` with the arguments `written`; its progress goes to `progress`.

        Raises:
            MCPError: there is none.
        """
        if tool == ASK and self.tools.routed and AGENT not in written:
            written = {**written, AGENT: self._routed(caller(ctx.request))}
        read = self.tools.read(tool, written)
        trace = self._tracing.trace(ctx.request)

        async def called() -> t.CallToolResult:
            allowance = self._admission.allowance(caller(ctx.request), read.tenant_id)
            spans.about(_of_whom(read))
            if isinstance(read, AskAgent):
                return await self._ask(ctx, read, allowance, progress=progress, trace=trace)
            host = self._services[tool].host
            self._permission.check(caller(ctx.request), host, tool, read.model_dump(exclude_none=True))
            return await self._pass_on(ctx, tool, read, allowance=allowance, progress=progress, trace=trace)

        asked = Asked("tools/call", tool, self._named(tool, read), arguments=written, trace=trace)
        return await self._admission.counted(ctx.request, asked, called, tenant=read.tenant_id)

    def _routed(self, verified: Caller | None) -> str:
        """Return the agent that the route of a caller leads to."""
        if host := self._permission.policy.route(verified):
            return host
        raise Failed("no_route", f"no route leads this caller to an agent: name one in `{AGENT}`")

    def _named(self, tool: str, read: Arguments) -> str:
        """Return the host name of what a call is about, where it is one: what becomes of the call is said of it."""
        if not isinstance(read, AskAgent):
            return self._services[tool].host
        if user_agents.is_users(read.agent_uri):
            return self._users.host
        host = names.slug(read.agent_uri.removeprefix(agentlets.SCHEME))
        return host if host in self._agents else names.GATEWAY

    async def _ask(
        self, ctx: Context, read: AskAgent, allowance: Allowance, *, progress: Progress | None, trace: str
    ) -> t.CallToolResult:
        traceparent = self._tracing.traceparent(trace)
        handle = _handle(allowance.name, read) if read.session_id else ""
        seconds = self._admission.seconds(allowance)
        if user_agents.is_users(read.agent_uri):
            if read.model is not None:
                raise invalid("model", "an agent of a user has its model")
            call = ToolCall(ASK, _of_user(read, handle), seconds, traceparent)
            self._permit(ctx, self._users.host, call, read.agent_uri)
            answer = await self._asked(ctx, self._users.keeper(read.agent_uri), call, progress)
            return results.of_agent(answer, trace)
        agent = self._agents[self._agentlets.find(read.agent_uri)]
        arguments = {"message": read.prompt} | ({"session_id": handle} if handle else {})
        call = ToolCall(
            SEND, arguments, seconds, traceparent, caller=digest(caller(ctx.request)), model=read.model or ""
        )
        self._permit(ctx, agent.host, call, read.agent_uri)
        answer = await self._asked(ctx, agent, call, progress)
        if read.model and not answer.failed and answer.model is None:
            raise Failed("failed", f"{agent} does not say which model has answered")
        return results.of_agent(answer, trace)

    async def _pass_on(
        self, ctx: Context, tool: str, read: Arguments, *, allowance: Allowance, progress: Progress | None, trace: str
    ) -> t.CallToolResult:
        """Return the result of a tool that a service has; it gets the arguments as they were checked."""
        service = self._services[tool]
        if isinstance(read, CreateAgent):
            await asyncio.to_thread(check_schema, read.output_schema)
        call = ToolCall(
            tool,
            read.model_dump(exclude_none=True),
            self._admission.seconds(allowance),
            self._tracing.traceparent(trace),
        )
        result = results.of_service(await self._asked(ctx, service, call, progress), read, service)
        if isinstance(read, CreateAgent) and not result.is_error:
            await self._subscriptions.changed(allowance.name, agentlets.MINE, *_made(result))
        return result

    def _permit(self, ctx: Context, host: str, call: ToolCall, uri: str) -> None:
        self._permission.check(caller(ctx.request), host, call.tool, call.arguments, uri=uri)

    async def _asked(self, ctx: Context, member: Peer, call: ToolCall, progress: Progress | None) -> Answer:
        verified = caller(ctx.request)
        await self._permission.confirm(verified, member.host, call.tool, call.arguments, model=call.model or "")
        return await peer.ask(self._client, member, call, progress)


def _of_whom(read: Arguments) -> dict[str, str | None]:
    """Return whose call it is (seed 002, Attributes); of a session a digest, since who has its id can go on with it."""
    session = _handle(read.tenant_id, read)[:32] if isinstance(read, AskAgent) and read.session_id else None
    return {spans.USER: getattr(read, "user_id", None), spans.SESSION: session}


def _made(result: t.CallToolResult) -> list[str]:
    """Return the URI of the agent that `create_agent` has made, where the service says one."""
    uri = (result.structured_content or {}).get("agent_uri")
    return [user_agents.full(uri)] if isinstance(uri, str) and user_agents.is_users(uri) else []


def _of_user(read: AskAgent, handle: str) -> dict[str, Any]:
    """Return the arguments with which the service that keeps an agent is asked for its answer."""
    arguments = {"agent_uri": user_agents.full(read.agent_uri), "tenant_id": read.tenant_id, "prompt": read.prompt}
    arguments |= {"user_id": read.user_id} if read.user_id else {}
    return arguments | ({"session_id": handle} if handle else {})


def _handle(tenant: str, read: AskAgent) -> str:
    """Return the agent's handle of a conversation: another one for each tenant and user."""
    parts = json.dumps([tenant, read.user_id, read.session_id])
    return hashlib.sha256(parts.encode()).hexdigest()
