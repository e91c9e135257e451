"""Agents that users have made: the service that has `create_agent` keeps them, lists them and answers for them."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from pallas_contract import names
from pallas_gateway.own.agents import agentlets
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers import objects, peer
from pallas_gateway.own.peers.peer import Peer, ToolCall

LIST = "list_agents"
"""Tool of the service that seed 002 has no word for: the agents of a tenant, which are its `my-agents://list`."""
ASK = "ask_agent"
"""Tool of the service that answers for such an agent."""
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

    def keeper(self, uri: str) -> Peer:
        """Return the service that answers for the agent `uri`.

        Raises:
            Failed: there is none, and so no such agent.
        """
        if self._service is None:
            raise _unknown(uri)
        return self._service

    async def _list(self, service: Peer, tenant: str, seconds: float, traceparent: str) -> list[Any]:
        call = ToolCall(LIST, {"tenant_id": tenant}, seconds, traceparent)
        answer = await peer.ask(self._client, service, call)
        body = None if answer.failed else objects.structured(answer)
        agents = body.get("agents") if body else None
        if not isinstance(agents, list):
            raise Failed("failed", f"{service} gives no list of `agents`")
        return agents


def _unknown(uri: str) -> Failed:
    return Failed("unknown_agent", f"Agent not found: {uri[:_SHOWN]}")
