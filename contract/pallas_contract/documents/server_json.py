"""The registry documents of the seed: entries of `GET /.well-known/mcp/server.json` (seed 000 section 1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from pallas_contract import names
from pallas_contract.documents.health import State, timestamp
from pallas_contract.documents.reason import Reason
from pallas_contract.fleet.fastagent import Capabilities
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
OFFICIAL_META = "io.modelcontextprotocol.registry/official"
REGISTRATION_META = "io.pallas-kit/registration"
"""Our own `_meta` key, only for agents that registered themselves: what they can do (seed 003 section 4)."""
HEALTH_META = "io.pallas-kit/health"
"""Our own `_meta` key: the state the registry last found, and why: `status`, `message`, and `reason`, a code."""

LARGEST = 16 * 1024 * 1024
"""Most bytes that a reader of a registry's documents takes; those of 10,000 agents are 4.6 million
(docs/scale-registry.md)."""


def registry_name(fleet: ResolvedFleet, agent: str) -> str:
    """Return `{namespace}/{slug}` (seed 001, Registry Name Construction).

    A namespace made from the project's name keeps only what the official schema admits.
    """
    namespace = re.sub(r"[^a-zA-Z0-9.-]+", "-", fleet.namespace)
    return f"{namespace}/{names.slug(agent)}"


def server(
    fleet: ResolvedFleet, name: str, capabilities: Capabilities | None, placement: addresses.Placement
) -> dict[str, Any]:
    """Return the `server` object of one agent: the public URL first, then the one inside the fleet's network."""
    agent = fleet.agents[name]
    public = addresses.agent_url(fleet, name, placement)
    inside = addresses.peer_url(fleet, name, placement) if placement == "container" else None
    urls = [url for url in (public, inside) if url]
    # The keys come in the order of the seed's example, so that the two can be compared by eye.
    document: dict[str, Any] = {
        "$schema": SCHEMA,
        "name": registry_name(fleet, name),
        "title": agent.title,
    }
    if agent.description:
        document["description"] = agent.description
    document["version"] = fleet.version
    if agent.icons:
        document["icons"] = [icon.model_dump(exclude_none=True) for icon in agent.icons]
    document["remotes"] = [{"type": "streamable-http", "url": url} for url in urls]
    if capabilities:
        document["capabilities"] = asdict(capabilities)
    return document


def registered(fleet: ResolvedFleet, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `server` object of an agent outside of the file, from the parameters of its `server.register`."""
    document = {"$schema": SCHEMA, "name": registry_name(fleet, params["agent_id"])}
    document["title"] = params.get("title") or names.title(params["agent_id"])
    if params.get("description"):
        document["description"] = params["description"]
    remotes = [{"type": "streamable-http", "url": params["url"]}] if params.get("url") else []
    return document | {"version": params["version"], "remotes": remotes}


def state_fields(state: State, reason: Reason) -> dict[str, str]:
    """Return a state as documents have it: `status`, and `message` and `reason` (a code) if there is any."""
    message = {"message": reason.message} if reason.message else {}
    return {"status": state} | message | ({"reason": reason.code} if reason.code != "Ok" else {})


def entry(
    server_document: dict[str, Any],
    updated: datetime,
    state: State,
    reason: Reason,
    *,
    registration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return one element of `servers`. `updated` is when anything in it last changed."""
    official = {"status": "active", "updatedAt": timestamp(updated), "isLatest": True}
    meta: dict[str, Any] = {OFFICIAL_META: official, HEALTH_META: state_fields(state, reason)}
    if registration:
        meta[REGISTRATION_META] = registration
    return {"server": server_document, "_meta": meta}
