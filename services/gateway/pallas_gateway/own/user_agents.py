"""Agents that users have made: the service that has `create_agent` keeps them, lists them and answers for them."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from pallas_contract import names
from pallas_gateway.own import agentlets, peer, results
from pallas_gateway.own.arguments import ASK, AskAgent
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peer import Answer, Peer, Progress, ToolCall

LIST = "list_agents"
"""Tool of the service that seed 002 has no word for: the agents of a tenant, which are its `my-agents://list`."""
_OF_USERS = "user/"
_SHOWN = 80
"""Characters of a URI from outside that are shown."""


def is_users(uri: str) -> bool:
    """Return whether a URI names an agent that a user has made, with or without its scheme."""
    return uri.removeprefix(agentlets.SCHEME).startswith(_OF_USERS)


def full(uri: str) -> str:
    """Return `uri` with its scheme."""
    return f"{agentlets.SCHEME}{uri.removeprefix(agentlets.SCHEME)}"


class UserAgents:
    """The agents that `service` keeps; none of them where there is no service."""

    def __init__(self, client: aiohttp.ClientSession, service: Peer | None) -> None:
        self._client = client
        self._service = service

    @property
    def host(self) -> str:
        """Return the host name of who keeps them: without a service the gateway, which knows that there are none."""
        return self._service.host if self._service else names.GATEWAY

    async def read(self, uri: str, tenant: str, *, seconds: float, traceparent: str) -> str:
        """Return the JSON of `my-agents://list`, or of the schema of one agent, as `tenant` has them.

        Raises:
            Failed: there is no such agent, or the service gives no list.
        """
        schemas = await self._list(self._service, tenant, seconds, traceparent) if self._service and tenant else []
        if uri == agentlets.MINE:
            return json.dumps(schemas)
        for schema in schemas:
            if isinstance(schema, dict) and schema.get("uri") == full(uri):
                return json.dumps(schema)
        raise _unknown(uri)

    async def ask(
        self, read: AskAgent, handle: str, *, seconds: float, traceparent: str, progress: Progress | None
    ) -> Answer:
        """Return the answer of an agent, in the conversation `handle` where that is not empty.

        Raises:
            Failed: there is no such agent, or no answer.
        """
        if self._service is None:
            raise _unknown(read.agent_uri)
        arguments = {"agent_uri": full(read.agent_uri), "tenant_id": read.tenant_id, "prompt": read.prompt}
        arguments |= {"user_id": read.user_id} if read.user_id else {}
        arguments |= {"session_id": handle} if handle else {}
        call = ToolCall(ASK, arguments, seconds, traceparent)
        return await peer.ask(self._client, self._service, call, progress)

    async def _list(self, service: Peer, tenant: str, seconds: float, traceparent: str) -> list[Any]:
        call = ToolCall(LIST, {"tenant_id": tenant}, seconds, traceparent)
        answer = await peer.ask(self._client, service, call)
        body = None if answer.failed else results.structured(answer)
        agents = body.get("agents") if body else None
        if not isinstance(agents, list):
            raise Failed("failed", f"{service} gives no list of `agents`")
        return agents


def _unknown(uri: str) -> Failed:
    return Failed("unknown_agent", f"Agent not found: {uri[:_SHOWN]}")
