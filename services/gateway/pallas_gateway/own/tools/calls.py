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
from pallas_gateway.own.admission import Admission, Context
from pallas_gateway.own.agents import agentlets, user_agents
from pallas_gateway.own.agents.agentlets import Agentlets
from pallas_gateway.own.agents.user_agents import UserAgents
from pallas_gateway.own.failures import Failed, invalid
from pallas_gateway.own.peers import peer
from pallas_gateway.own.peers.peer import Answer, Peer, Progress, ToolCall
from pallas_gateway.own.subscriptions import Subscriptions
from pallas_gateway.own.tools import results
from pallas_gateway.own.tools.arguments import ASK, Arguments, AskAgent, CreateAgent, Tools, check_schema
from pallas_gateway.own.tracing import Tracing
from pallas_gateway.tenants import Allowance
from pallas_service.access.caller import caller


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
        self._agents = agents
        self._services = services
        self._agentlets = agentlets
        self._users = users
        self._subscriptions = subscriptions
        self.tools = Tools((ASK, *sorted(services)))

    async def call(
        self, ctx: Context, tool: str, written: Mapping[str, Any], progress: Progress | None
    ) -> t.CallToolResult:
        """Return the result of `tool` with the arguments `written`; its progress goes to `progress`.

        Raises:
            MCPError: there is none.
        """
        read = self.tools.read(tool, written)
        trace = self._tracing.trace(ctx.request)

        async def called() -> t.CallToolResult:
            allowance = self._admission.allowance(caller(ctx.request), read.tenant_id)
            if isinstance(read, AskAgent):
                return await self._ask(ctx, read, allowance, progress=progress, trace=trace)
            return await self._pass_on(tool, read, allowance=allowance, progress=progress, trace=trace)

        return await self._admission.counted(
            ctx.request, "tools/call", tool, called, tenant=read.tenant_id, agent=self._named(tool, read), trace=trace
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
        self, ctx: Context, read: AskAgent, allowance: Allowance, *, progress: Progress | None, trace: str
    ) -> t.CallToolResult:
        traceparent = self._tracing.traceparent(trace)
        handle = _handle(allowance.name, read) if read.session_id else ""
        seconds = self._admission.seconds(allowance)
        if user_agents.is_users(read.agent_uri):
            if read.model is not None:
                raise invalid("model", "an agent of a user has its model")
            call = ToolCall(ASK, _of_user(read, handle), seconds, traceparent)
            answer = await self._asked(self._users.keeper(read.agent_uri), call, progress)
            return results.of_agent(answer, trace)
        agent = self._agents[self._agentlets.find(read.agent_uri)]
        arguments = {"message": read.prompt} | ({"session_id": handle} if handle else {})
        call = ToolCall(
            "send_message", arguments, seconds, traceparent, caller=digest(caller(ctx.request)), model=read.model or ""
        )
        answer = await self._asked(agent, call, progress)
        if read.model and not answer.failed and answer.model is None:
            raise Failed("failed", f"{agent} does not say which model has answered")
        return results.of_agent(answer, trace)

    async def _pass_on(
        self, tool: str, read: Arguments, *, allowance: Allowance, progress: Progress | None, trace: str
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
        result = results.of_service(await self._asked(service, call, progress), read, service)
        if isinstance(read, CreateAgent) and not result.is_error:
            await self._subscriptions.changed(allowance.name, agentlets.MINE, *_made(result))
        return result

    async def _asked(self, member: Peer, call: ToolCall, progress: Progress | None) -> Answer:
        return await peer.ask(self._client, member, call, progress)


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
