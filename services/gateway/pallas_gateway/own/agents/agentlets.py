"""Agents behind the gateway as seed 002 calls them: agent-lets, by URI, with a JSON schema of what they answer."""

from __future__ import annotations

import json
from collections.abc import Collection
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
            raise Failed("unknown_agent", f"Agent not found: {uri[:_SHOWN]}")
        return host

    def read(self, uri: str) -> str:
        """Return the JSON of a resource.

        Raises:
            Failed: it names an agent that is not behind this gateway.
            KeyError: it is no resource of the gateway.
        """
        if uri == SYSTEM:
            return json.dumps(list(self._schemas.values()))
        if not uri.startswith(SCHEME):
            raise KeyError(uri)
        return json.dumps(self._schemas[self.find(uri)])


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
