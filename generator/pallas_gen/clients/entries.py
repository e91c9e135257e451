"""A fleet file, or the document of a registry -> the agents that a client outside of the fleet can reach. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses, credentials

_EXPANDED = frozenset("${}")
_ALL_AT_ONCE = "Every agent behind the gateway, named in the call"


@dataclass(frozen=True, slots=True)
class Entry:
    """One MCP server for a client's configuration."""

    name: str
    """Host name of the agent: letters of a-z, digits and hyphens."""
    url: str
    description: str
    token: bool
    """Whether it asks its callers for a token."""
    registered: bool = False
    """Whether it is outside of the fleet file: whoever registered it would be shown the token."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The agents that can be reached, and the names of those that publish no address."""

    reached: tuple[Entry, ...]
    hidden: tuple[str, ...]


def of_fleet(fleet: ResolvedFleet) -> Entries:
    """Return the agents of a fleet file: at their own addresses, or through the gateway where none is for clients.

    The gateway is one more where it has tools of its own, as it does for tenants. No registry has its address.
    """
    reached = []
    hidden = []
    for name, agent in fleet.agents.items():
        text = agent.description or agent.title
        behind = fleet.gateway and fleet.gateway.publish and name in fleet.gateway.agents
        closed = fleet.is_through(name) or (behind and _for_members(fleet, name))
        if not closed and (url := addresses.agent_url(fleet, name, "container")):
            reached.append(Entry(agent.slug, url, text, credentials.protected(fleet, name)))
        elif fleet.gateway and behind:
            access = fleet.gateway.access
            url = f"{addresses.gateway_url(fleet, 'container')}/agents/{agent.slug}{names.MCP_PATH}"
            reached.append(Entry(agent.slug, url, text, bool(access.tokens or access.jwt)))
        else:
            hidden.append(agent.slug)
    if fleet.gateway and fleet.gateway.publish and fleet.gateway.tenants:
        access = fleet.gateway.access
        url = f"{addresses.gateway_url(fleet, 'container')}{names.MCP_PATH}"
        reached.append(Entry(names.GATEWAY, url, _ALL_AT_ONCE, bool(access.tokens or access.jwt)))
    return Entries(tuple(reached), tuple(hidden))


def _for_members(fleet: ResolvedFleet, name: str) -> bool:
    """Return whether an agent takes the tokens of the gateway and of other agents alone: no client is to have one."""
    access = fleet.agents[name].access
    return bool(access.tokens) and not access.jwt and access.tokens.keys() <= {names.GATEWAY, *fleet.agents}


def of_registry(document: Mapping[str, Any]) -> Entries:
    """Return the agents in the document of a running registry, registered ones too (seed 000, section 1).

    One that asks for a token is `unauthenticated` there.

    Raises:
        KeyError, TypeError, AttributeError: it is none.
    """
    reached = []
    hidden = []
    for item in document["servers"]:
        server = item["server"]
        name = server["name"].rpartition("/")[2]
        inside = addresses.inside_urls(name)
        urls = [remote["url"] for remote in server["remotes"] if remote["url"] not in inside]
        health = item["_meta"].get(server_json.HEALTH_META, {})
        if urls:
            text = server.get("description") or server["title"]
            registered = server_json.REGISTRATION_META in item["_meta"]
            token = health.get("status") == "unauthenticated" and not registered
            reached.append(Entry(name, urls[0], text, token, registered))
        else:
            hidden.append(name)
    return Entries(tuple(sorted(reached, key=lambda entry: entry.name)), tuple(sorted(hidden)))


def with_token(entries: Entries, token: bool) -> Entries:
    """Return the same with a token for all agents of the fleet file, or for none."""
    reached = (replace(entry, token=token and not entry.registered) for entry in entries.reached)
    return replace(entries, reached=tuple(reached))


def expanded(entries: Iterable[Entry]) -> list[str]:
    """Return the names of those in whose URLs a client would put variables of its environment, keys among them."""
    return [entry.name for entry in entries if _EXPANDED.intersection(entry.url)]


def asking(entries: Iterable[Entry]) -> list[str]:
    """Return the names of those that ask for a token."""
    return [entry.name for entry in entries if entry.token]
