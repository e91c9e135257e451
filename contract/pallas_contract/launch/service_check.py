"""The question by which the registry sees that a service or the gateway is up, from the fleet file.

It is asked over the network: nothing is run in the service's container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses
from pallas_contract.launch.addresses import Placement

CheckKind = Literal["mcp", "sse", "get", "tcp"]
"""MCP; the stream of HTTP with SSE (MCP 2024-11-05); GET answered with 200; a connection that is taken."""

_SSE = "/sse"
"""End of the path by which clients of MCP know a server of the transport of 2024-11-05."""
_SHOWN = 80
"""Characters of a command that are shown."""


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    """One question to one service: `kind` and `url`. Where `obstacle` says why nobody can ask, there is no URL."""

    kind: CheckKind = "mcp"
    url: str = ""
    obstacle: str = ""


def followed(fleet: ResolvedFleet) -> tuple[str, ...]:
    """Return the names of what the registry follows beside the agents: the gateway and the services."""
    return (*([names.GATEWAY] if fleet.gateway else []), *fleet.services)


def provides(fleet: ResolvedFleet, name: str) -> str:
    """Return in a word what one of `followed` is."""
    return fleet.services[name].provides if name in fleet.services else "gateway"


def service_check(fleet: ResolvedFleet, name: str, placement: Placement) -> ServiceCheck:
    """Return how the registry asks `name`, one of `followed`.

    A `health.command` runs in the container only, and what is at `url` belongs to somebody else: neither is asked.
    """
    if fleet.gateway and name == names.GATEWAY:
        return ServiceCheck("get", f"http://{addresses.gateway_authority(fleet.gateway, placement)}{names.READY_PATH}")
    return _of_service(fleet, name, placement)


def _of_service(fleet: ResolvedFleet, name: str, placement: Placement) -> ServiceCheck:
    service = fleet.services[name]
    health = service.health
    at = addresses.authority(fleet, name, placement)
    if placement == "local" and service.image and not service.command:
        return ServiceCheck(obstacle=f"it runs outside of the fleet, at {at}" if service.url else "it is not started")
    if health and health.command and placement == "container":
        command = " ".join(health.command)
        shown = command if len(command) <= _SHOWN else f"{command[:_SHOWN]}…"
        return ServiceCheck(obstacle=f"its health is a command in its container, `{shown}`")
    if health and health.path:
        return ServiceCheck("get", f"http://{at}{health.path}")
    if health or service.provides == "other":
        return ServiceCheck("tcp", f"tcp://{at}")
    if service.provides == "openai":
        return ServiceCheck("get", f"{addresses.service_url(fleet, name, placement)}/models")
    url = addresses.mcp_url(fleet, name, placement)
    return ServiceCheck("sse" if urlsplit(url).path.endswith(_SSE) else "mcp", url)


def checked_services(fleet: ResolvedFleet) -> tuple[str, ...]:
    """Return the host names of what the registry asks in containers beside the agents, sorted."""
    checks = {name: service_check(fleet, name, "container") for name in followed(fleet)}
    return tuple(sorted(names.slug(name) for name, check in checks.items() if check.url))
