"""Addresses of the fleet's programs: the one each listens on, the URLs and host names others reach it by.

In a container everything listens on one port and is found by DNS; as processes on one machine everything listens on
the port agents.yaml gives it (seed 001).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.model import Service
from pallas_contract.fleet.resolved import ResolvedFleet

Placement = Literal["container", "local"]

LOOPBACK = "127.0.0.1"
MODELS_PATH = "/v1/models"
"""What an OpenAI-compatible service is asked to see whether it is up."""


def placement(environ: Mapping[str, str]) -> Placement:
    """Return where a program was told that it runs.

    Raises:
        ValueError: in the words of a problem, without the name of the variable.
    """
    text = environ.get(names.ENV_PLACEMENT) or "local"
    for value in get_args(Placement):
        if text == value:
            return value  # type: ignore[no-any-return]
    raise ValueError(f"must be `container` or `local`, not {text[:80]!r}")


def authority(fleet: ResolvedFleet, name: str, placement: Placement) -> str:
    """Return `host:port`, under which the rest of the fleet reaches an agent or service."""
    if placement == "container":
        return f"{names.slug(name)}:{container_port(fleet, name)}"
    if (service := fleet.services.get(name)) and service.url:
        parts = urlsplit(service.url)
        return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    return f"{local_address(fleet, name)}:{_port(fleet, name)}"


def mcp_url(fleet: ResolvedFleet, name: str, placement: Placement) -> str:
    """Return the MCP endpoint of an agent or MCP service inside the fleet."""
    if name in fleet.services:
        return service_url(fleet, name, placement)
    return f"http://{authority(fleet, name, placement)}{names.MCP_PATH}"


def peer_url(fleet: ResolvedFleet, name: str, placement: Placement) -> str:
    """Return the MCP URL under which agents of the fleet call a member: the gateway's where it is `through` that."""
    if fleet.gateway and fleet.is_through(name):
        return f"http://{gateway_authority(fleet.gateway, placement)}{gateway_path(fleet, name)}"
    return mcp_url(fleet, name, placement)


def gateway_path(fleet: ResolvedFleet, name: str) -> str:
    """Return the path of a member at the gateway."""
    return f"/{'agents' if name in fleet.agents else 'services'}/{names.slug(name)}{names.MCP_PATH}"


def inside_urls(host_name: str) -> tuple[str, str]:
    """Return the URLs of an agent that hold inside a fleet of containers alone: its own, and that at the gateway."""
    own = f"http://{host_name}:{names.CONTAINER_PORT}{names.MCP_PATH}"
    return own, f"http://{names.GATEWAY}:{names.CONTAINER_PORT}/agents/{host_name}{names.MCP_PATH}"


def service_url(fleet: ResolvedFleet, name: str, placement: Placement) -> str:
    """Return the URL of what a service provides; a `url` without a path gets the usual one."""
    service = fleet.services[name]
    if placement == "local" and service.url and urlsplit(service.url).path.strip("/"):
        return service.url
    scheme = urlsplit(service.url).scheme if placement == "local" and service.url else "http"
    return f"{scheme}://{authority(fleet, name, placement)}{service_path(service)}"


def container_port(fleet: ResolvedFleet, name: str) -> int:
    """Return the port that a member listens on in its container: an image's is its own."""
    service = fleet.services.get(name)
    return service.port if service and service.image else names.CONTAINER_PORT


def is_started(fleet: ResolvedFleet, name: str, placement: Placement) -> bool:
    """Return whether a service is a program of the fleet: as a process an image needs a command for that."""
    service = fleet.services[name]
    return placement == "container" or not service.image or bool(service.command)


def health_url(fleet: ResolvedFleet, name: str, placement: Placement) -> str:
    """Return the URL for a probe on the same host: the MCP endpoint, or the models of an OpenAI-compatible service."""
    at = f"{LOOPBACK}:{names.CONTAINER_PORT}" if placement == "container" else authority(fleet, name, placement)
    service = fleet.services.get(name)
    if service and service.image:
        return _image_health_url(service)
    path = MODELS_PATH if service and service.provides == "openai" else names.MCP_PATH
    return f"http://{at}{path}"


def _image_health_url(service: Service) -> str:
    """Return what tells that an image is up, in its container or on its machine: a `tcp:` URL where nothing better."""
    at = f"{LOOPBACK}:{service.port}"
    path = service.health.path if service.health else None
    if service.health is None and service.provides == "openai":
        path = f"{service_path(service)}/models"
    # What ends otherwise would be asked with GET, which no MCP server answers with 200.
    elif service.health is None and service.provides == "mcp" and service_path(service).endswith(names.MCP_PATH):
        path = service_path(service)
    return f"tcp://{at}" if path is None else f"http://{at}{path}"


def service_path(service: Service) -> str:
    """Return the path of what a service provides."""
    return service.path or {"mcp": names.MCP_PATH, "openai": "/v1", "other": ""}[service.provides]


def registry_health_url(fleet: ResolvedFleet, placement: Placement) -> str:
    """Return the URL for a probe of the registry on the same host."""
    return _ready_url(fleet.registry.publish, fleet.registry_port, placement)


def gateway_health_url(gateway: Gateway, placement: Placement) -> str:
    """Return the URL for a probe of the gateway on the same host."""
    return _ready_url(gateway.publish, gateway.port, placement)


def _ready_url(publish: bool | str, port: int, placement: Placement) -> str:
    if placement == "container":
        return f"http://{LOOPBACK}:{names.CONTAINER_PORT}{names.READY_PATH}"
    return f"http://{_reached_at(publish)}:{port}{names.READY_PATH}"


def _port(fleet: ResolvedFleet, name: str) -> int:
    return (fleet.agents.get(name) or fleet.services[name]).port


def local_address(fleet: ResolvedFleet, name: str) -> str:
    """Return loopback, unless a process listens on one particular other address."""
    return _reached_at(fleet.agents[name].publish if name in fleet.agents else None)


def _reached_at(publish: bool | str | None) -> str:
    if not isinstance(publish, str) or ip_address(publish).is_unspecified:
        return LOOPBACK
    return f"[{publish}]" if ":" in publish else publish


def public_url(fleet: ResolvedFleet, host_name: str, port: int) -> str:
    """Return the URL of what is published for clients outside of the fleet, without a path of its own."""
    return fleet.public_url.replace("{name}", host_name) if fleet.public_url else f"http://{fleet.host}:{port}"


def bind_address(publish: bool | str | None) -> str:
    """Return the host address a port is published on, or a process listens on."""
    return publish if isinstance(publish, str) else LOOPBACK


def registry_url(fleet: ResolvedFleet, placement: Placement) -> str:
    """Return the URL at which the rest of the fleet reaches the registry, without a path."""
    if placement == "container":
        return f"http://{names.REGISTRY}:{names.CONTAINER_PORT}"
    return f"http://{_reached_at(fleet.registry.publish)}:{fleet.registry_port}"


def registry_hosts(fleet: ResolvedFleet) -> list[str]:
    """Return `allowed_hosts` of the registry."""
    publish = fleet.registry.publish
    return allowed_hosts(fleet, names.REGISTRY, _reached_at(publish), published=bool(publish))


def gateway_hosts(fleet: ResolvedFleet, gateway: Gateway) -> list[str]:
    """Return `allowed_hosts` of the gateway."""
    publish = gateway.publish
    return allowed_hosts(fleet, names.GATEWAY, _reached_at(publish), published=bool(publish))


def gateway_authority(gateway: Gateway, placement: Placement) -> str:
    """Return `host:port`, under which the rest of the fleet reaches the gateway."""
    if placement == "container":
        return f"{names.GATEWAY}:{names.CONTAINER_PORT}"
    return f"{_reached_at(gateway.publish)}:{gateway.port}"


def gateway_url(fleet: ResolvedFleet, placement: Placement) -> str:
    """Return the URL of the gateway for its clients, without a path; empty where there is none."""
    gateway = fleet.gateway
    if gateway is None:
        return ""
    if gateway.publish:
        return public_url(fleet, names.GATEWAY, gateway.port)
    return f"http://{gateway_authority(gateway, placement)}"


def allowed_hosts(
    fleet: ResolvedFleet, host_name: str, address: str = LOOPBACK, *, published: bool = False
) -> list[str]:
    """Return the Host headers an endpoint accepts: its DNS name, its addresses, and its public names; any port."""
    outside = urlsplit(public_url(fleet, host_name, 0)).hostname if published and fleet.public_url else None
    # Clients leave the port out of Host where it is the scheme's default, so each name is admitted with and without.
    hosts = sorted({host_name, "localhost", LOOPBACK, address, fleet.host, outside or fleet.host})
    return [pattern for host in hosts for pattern in (host, f"{host}:*")]


def bind(port: int, publish: bool | str | None, placement: Placement) -> str:
    # A container learns its addresses when it starts; `names.ENV_LISTEN_ON` narrows them down where that matters.
    if placement == "container":
        return f"0.0.0.0:{names.CONTAINER_PORT}"
    address = bind_address(publish)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def agent_url(fleet: ResolvedFleet, name: str, placement: Placement) -> str | None:
    """Return the URL of an agent for clients outside the fleet's network; None when it is not published.

    Several containers cannot share one host port: an agent with replicas is reached inside the fleet only, unless
    something stands before them that has an address of its own.

    As processes the agents listen on this machine, and a client on it is as near as any. One that is `through` the
    gateway has its address there.
    """
    agent = fleet.agents[name]
    if fleet.gateway and fleet.is_through(name):
        reached = placement == "local" or fleet.gateway.publish
        return gateway_url(fleet, placement) + gateway_path(fleet, name) if reached else None
    if agent.publish and (placement == "local" or agent.replicas == 1 or fleet.public_url):
        return public_url(fleet, names.slug(name), agent.port) + names.MCP_PATH
    return mcp_url(fleet, name, placement) if placement == "local" else None
