"""Agents behind the gateway as seed 002 calls them: agent-lets, by URI, with a JSON schema of what they answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_gateway.own.failures import Failed

SCHEME = "agentlet://"
SYSTEM = "system-agents://list"
MINE = "my-agents://list"
_SHOWN = 80
"""Characters of a URI from outside that are shown."""


class Agentlets:
    """The agents of `fleet` that the gateway leads to, by their host names."""

    def __init__(self, fleet: ResolvedFleet, behind: Collection[str]) -> None:
        self._schemas = {
            agent.slug: _schema(agent.slug, agent.title, agent.description, fleet.version)
            for agent in fleet.agents.values()
            if agent.slug in behind
        }

    def find(self, uri: str) -> str:
        """Return the host name of the agent that `uri` names, with or without its scheme.

        Raises:
            Failed: there is none behind this gateway.
        """
        host = names.slug(uri.removeprefix(SCHEME))
        if host not in self._schemas:
            raise _unknown(uri)
        return host

    def read(self, uri: str, shown: Callable[[str], bool]) -> str:
        """Return the JSON of a resource, as if there were only the agents that are `shown`.

        Raises:
            Failed: it names an agent that is not behind this gateway.
            KeyError: it is no resource of the gateway.
        """
        if uri == SYSTEM:
            return json.dumps([schema for host, schema in self._schemas.items() if shown(host)])
        if not uri.startswith(SCHEME):
            raise KeyError(uri)
        host = self.find(uri)
        if not shown(host):
            raise _unknown(uri)
        return json.dumps(self._schemas[host])


def _unknown(uri: str) -> Failed:
    return Failed("unknown_agent", f"Agent not found: {uri[:_SHOWN]}")


def _schema(host: str, title: str, description: str | None, version: str) -> dict[str, Any]:
    return {
        "fully_qualified_name": host,
        "uri": f"{SCHEME}{host}",
        "title": title,
        "description": description or "",
        "version": version,
        "type": "object",
        "properties": {"answer": {"type": "string"}},
    }
