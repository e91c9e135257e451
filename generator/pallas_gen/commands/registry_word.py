"""The registry's word about an agent at whose address nobody answers: a process that has ended cannot say why."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.documents import absence, server_json
from pallas_contract.fleet import source
from pallas_contract.launch import addresses
from pallas_contract.probe import http_client, probe
from pallas_contract.problems import Refused
from pallas_contract.validate import load


async def registry_word(url: str, file: Path) -> str:
    """Return why the agent at `url` is not up, as the registry of the fleet in `file` has it; empty where it has not.

    Nothing is said about what is wrong with `file`, or with the registry: another endpoint was asked for.
    """
    try:
        fleet = load.parse(source.read(file))
        registry = addresses.public_url(fleet, names.REGISTRY, fleet.registry_port)
        async with asyncio.timeout(probe.TIMEOUT):
            response = await http_client.request(
                "GET", f"{registry}{names.SERVER_JSON_PATH}", limit=server_json.LARGEST
            )
        entries = json.loads(response.body)["servers"]
        return next((word for entry in entries if (word := _word(entry, url))), "")
    except (Refused, OSError, TimeoutError, http_client.Unreachable, ValueError, KeyError, TypeError, AttributeError):
        return ""


def _word(entry: dict[str, Any], url: str) -> str:
    """Return the message of an entry of the seed's catalogue, where it is about `url` and why nobody is there."""
    if _place(url) not in [_place(remote["url"]) for remote in entry["server"]["remotes"]]:
        return ""
    health = entry["_meta"][server_json.HEALTH_META]
    return str(health.get("message", "")) if health.get("reason") in absence.CODES else ""


def _place(url: str) -> tuple[str, int | None, str]:
    """Return host, port and path; every name of this machine is the same one."""
    parts = urlsplit(url)
    host = "localhost" if parts.hostname in names.LOCAL_HOSTS else parts.hostname or ""
    return host, parts.port, parts.path
