"""The registry's documents -> its agents and services, with state, reason and URL, and whose it is."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Literal

from pallas_cli.trouble import Trouble
from pallas_contract import names
from pallas_contract.documents import server_json
from pallas_contract.launch import addresses
from pallas_contract.launch.owner import Owner, parse
from pallas_contract.probe import http_client

Kind = Literal["agent", "service"]
_PATIENCE = 10.0
"""Seconds for both documents; a registry answers in milliseconds."""


@dataclass(frozen=True, slots=True)
class Member:
    """An agent or a service as the registry has it."""

    name: str
    """The last part of an agent's registry name: its host name."""
    kind: Kind
    status: str
    message: str = ""
    reason: str = ""
    url: str = ""
    """Where clients outside of the fleet reach an agent; empty where it publishes no address."""
    title: str = ""
    description: str = ""
    is_registered: bool = False
    """The agent registered itself: its URL is somebody else's word."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All that a registry says; an older one says nothing of its owner."""

    members: list[Member]
    """The agents and then the services."""
    owner: Owner | None = None


class NoRegistry(Trouble):
    """Nobody answers at the URL, or somebody who is no registry of the kit."""


def read(url: str) -> Listing:
    """Return what the registry at `url` lists.

    Raises:
        NoRegistry: there is none.
    """
    return asyncio.run(_read(url.rstrip("/")))


async def _read(url: str) -> Listing:
    try:
        async with asyncio.timeout(_PATIENCE):
            agents = await _get(f"{url}{names.SERVER_JSON_PATH}")
            services = await _get(f"{url}{names.SERVICES_PATH}")
        listed = [_agent(entry) for entry in agents["servers"]]
        listed += [_service(entry) for entry in services["services"]]
        return Listing(listed, parse(services))
    except http_client.Unreachable as error:
        raise NoRegistry(f"no registry answers at {url}: {error.reason.message}") from None
    except TimeoutError:
        raise NoRegistry(f"no registry answers at {url}: no answer in {_PATIENCE:g} s") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise NoRegistry(f"what answers at {url} is no registry of pallas-kit") from None


async def _get(url: str) -> Any:
    response = await http_client.request("GET", url, limit=server_json.LARGEST)
    if response.status != 200:
        raise ValueError(f"HTTP {response.status}")
    return json.loads(response.body)


def _agent(entry: dict[str, Any]) -> Member:
    server = entry["server"]
    health = entry["_meta"].get(server_json.HEALTH_META, {})
    name = server["name"].rpartition("/")[2]
    urls = [remote["url"] for remote in server["remotes"]]
    return Member(
        name=name,
        kind="agent",
        status=health.get("status", "unknown"),
        message=health.get("message", ""),
        reason=health.get("reason", ""),
        url=_public(name, urls),
        title=server.get("title", ""),
        description=server.get("description", ""),
        is_registered=server_json.REGISTRATION_META in entry["_meta"],
    )


def _public(name: str, urls: list[str]) -> str:
    """Return the first of `urls`, where it is the public one (decision 0028); empty where there is none.

    An agent in a container that is not published has the address inside the fleet's network alone. Outside, its host
    name may be anybody's, and a token shown there is lost.
    """
    return urls[0] if urls and urls[0] not in addresses.inside_urls(name) else ""


def _service(entry: dict[str, Any]) -> Member:
    return Member(entry["name"], "service", entry["status"], entry.get("message", ""), entry.get("reason", ""))
