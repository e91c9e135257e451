"""Agents as resources (seed 002, Resources): listed, and read within the limits of the caller's tenant."""

from __future__ import annotations

import mcp_types as t

from pallas_contract import names
from pallas_gateway.own.admission import Admission, Asked, Context
from pallas_gateway.own.agents import agentlets, user_agents
from pallas_gateway.own.agents.agentlets import Agentlets
from pallas_gateway.own.agents.user_agents import UserAgents
from pallas_gateway.own.failures import invalid
from pallas_gateway.own.tracing import Tracing
from pallas_service.access.caller import caller

_JSON = "application/json"
RESOURCES = [
    t.Resource(
        uri=agentlets.SYSTEM, name="System Agents", description="All agents behind this gateway", mime_type=_JSON
    ),
    t.Resource(uri=agentlets.MINE, name="User Agents", description="Agents that users have made", mime_type=_JSON),
]
TEMPLATES = [
    t.ResourceTemplate(
        uri_template=f"{agentlets.SCHEME}{{uri}}",
        name="Specific Agent",
        description="Schema of one agent",
        mime_type=_JSON,
    )
]


class Resources:
    """The agents behind the gateway, and those of the caller's tenant."""

    def __init__(self, admission: Admission, tracing: Tracing, agentlets: Agentlets, users: UserAgents) -> None:
        self._admission = admission
        self._tracing = tracing
        self._policy = admission.permission.policy
        self._agentlets = agentlets
        self._users = users

    async def read(self, ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        """Return a resource as JSON.

        Raises:
            MCPError: there is none, or it cannot be had.
        """
        uri = params.uri
        users = uri == agentlets.MINE or (uri.startswith(agentlets.SCHEME) and user_agents.is_users(uri))
        tenant = self._admission.tenant(caller(ctx.request)) if users else ""

        async def contents() -> t.ReadResourceResult:
            text = await self._read_users(ctx, uri, tenant) if users else self._read_systems(ctx, uri)
            return t.ReadResourceResult(contents=[t.TextResourceContents(uri=uri, mime_type=_JSON, text=text)])

        agent = self._users.host if users else names.GATEWAY
        return await self._admission.counted(
            ctx.request, Asked("resources/read", uri, agent), contents, tenant=tenant, common=True
        )

    def _read_systems(self, ctx: Context, uri: str) -> str:
        verified = caller(ctx.request)
        try:
            return self._agentlets.read(uri, lambda host: self._policy.knows(verified, host))
        except KeyError:
            raise invalid("uri", "Unknown resource") from None

    async def _read_users(self, ctx: Context, uri: str, tenant: str) -> str:
        verified, host = caller(ctx.request), self._users.host
        seconds = self._admission.seconds(self._admission.allowance(verified, tenant)) if tenant else 0.0
        if not self._policy.may(verified, host, user_agents.ASK):
            tenant = ""  # they are like agents of somebody else
        if tenant:
            await self._admission.permission.confirm(verified, host, user_agents.LIST, {"tenant_id": tenant})
        traceparent = self._tracing.traceparent(self._tracing.trace(ctx.request))
        return await self._users.read(uri, tenant, seconds=seconds, traceparent=traceparent)
