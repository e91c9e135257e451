"""`GET {registry_url}/.well-known/mcp/server.json` and what Daedalus takes from it (seed 000 section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

PATH = "/.well-known/mcp/server.json"
TIMEOUT = 10.0
"""Seconds for the whole document."""


class NotARegistry(Exception):
    """The URL does not answer with a registry's document; the text says what is wrong, fit to be shown."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One entry. `server_id` is the last segment of `name`; `icon` the first one's `src`, as it stands there."""

    server_id: str
    name: str
    title: str
    url: str
    description: str = ""
    version: str = ""
    icon: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)


async def fetch(registry_url: str) -> tuple[Agent, ...]:
    """Return the agents that Daedalus can connect to, in the order of the document.

    Raises:
        NotARegistry: nobody answers there, or somebody else.
    """
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT) as client:
            reply = await client.get(registry_url.rstrip("/") + PATH, headers={"accept": "application/json"})
        reply.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotARegistry(f"{registry_url}: {error or type(error).__name__}") from None
    if reply.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise NotARegistry(f"{registry_url}: answers with {reply.headers.get('content-type')}, not application/json")
    try:
        found = [agent(entry["server"]) for entry in reply.json()["servers"]]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise NotARegistry(f"{registry_url}: not a registry's document: {error!r}") from None
    return tuple(each for each in found if each)


def agent(server: Mapping[str, Any]) -> Agent | None:
    """Return a `server` object as an agent; None when it has no `streamable-http` remote to connect to."""
    urls = [remote["url"] for remote in server["remotes"] if remote["type"] == "streamable-http"]
    if not urls:
        return None
    icons = server.get("icons") or [{}]
    return Agent(
        server_id=server["name"].rpartition("/")[2],
        name=server["name"],
        title=server.get("title") or server["name"],
        url=urls[0],
        description=server.get("description", ""),
        version=server.get("version", ""),
        icon=icons[0].get("src", ""),
        capabilities=server.get("capabilities", {}),
    )
