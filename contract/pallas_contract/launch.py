"""How a program of the fleet is started: command and environment, the same rules on every target.

In a container everything listens on one port and is found by DNS; as processes on one machine everything listens on
the port agents.yaml gives it (seed 001). Nothing else differs between the two placements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.fleet import Fleet

Placement = Literal["container", "local"]
LOOPBACK = "127.0.0.1"
STATE: Mapping[Placement, str] = {"container": names.STATE_DIR, "local": ".pallas"}
"""Folder of what is kept over a restart: a volume, or beside agents.yaml."""
MODELS_PATH = "/v1/models"
"""What an OpenAI-compatible service is asked to see whether it is up."""


def authority(fleet: Fleet, name: str, placement: Placement) -> str:
    """`host:port` under which the rest of the fleet reaches an agent or service."""
    if placement == "container":
        return f"{names.slug(name)}:{names.CONTAINER_PORT}"
    return f"{_local_address(fleet, name)}:{_port(fleet, name)}"


def mcp_url(fleet: Fleet, name: str, placement: Placement) -> str:
    """MCP endpoint of an agent or MCP service inside the fleet."""
    return f"http://{authority(fleet, name, placement)}{names.MCP_PATH}"


def health_url(fleet: Fleet, name: str, placement: Placement) -> str:
    """What a probe on the same host asks: the MCP endpoint, or the model list of an OpenAI-compatible service."""
    at = f"{LOOPBACK}:{names.CONTAINER_PORT}" if placement == "container" else authority(fleet, name, placement)
    service = fleet.services.get(name)
    path = MODELS_PATH if service and service.provides == "openai" else names.MCP_PATH
    return f"http://{at}{path}"


def _port(fleet: Fleet, name: str) -> int:
    return (fleet.agents.get(name) or fleet.services[name]).port


def _local_address(fleet: Fleet, name: str) -> str:
    """Loopback, unless a process listens on one particular other address."""
    return _reached_at(fleet.agent(name).publish if name in fleet.agents else None)


def _reached_at(publish: bool | str | None) -> str:
    if not isinstance(publish, str) or ip_address(publish).is_unspecified:
        return LOOPBACK
    return f"[{publish}]" if ":" in publish else publish


def public_url(fleet: Fleet, host_name: str, port: int) -> str:
    """Where clients outside of the fleet reach what is published, without a path of its own."""
    return fleet.public_url.replace("{name}", host_name) if fleet.public_url else f"http://{fleet.host}:{port}"


def bind_address(publish: bool | str | None) -> str:
    """The host address a port is published on, or a process listens on."""
    return publish if isinstance(publish, str) else LOOPBACK


def peers(fleet: Fleet, name: str, placement: Placement) -> dict[str, str]:
    """The MCP URLs of what an agent depends on, by name."""
    callable_ = [
        peer for peer in fleet.agents[name].depends_on if peer in fleet.agents or fleet.services[peer].provides == "mcp"
    ]
    return {peer: mcp_url(fleet, peer, placement) for peer in sorted(callable_)}


def agent_command(name: str) -> list[str]:
    """Arguments after the interpreter: one agent, no registry (seed 001, Single agent mode).

    `-P` keeps the project folder, which is the working directory, from shadowing modules of ours.
    """
    return ["-P", "-m", "pallas_agent_runtime", "--agent", name]


def service_command(fleet: Fleet, name: str) -> list[str]:
    return ["-m", fleet.services[name].module, *fleet.services[name].args]


def registry_command() -> list[str]:
    return ["-P", "-m", "pallas_registry"]


def agent_env(fleet: Fleet, name: str, placement: Placement) -> dict[str, str]:
    """Environment of an agent; what the user set in `env` wins."""
    agent = fleet.agent(name)
    address, published = _local_address(fleet, name), bool(agent.publish)
    env = {
        names.ENV_BIND: _bind(agent.port, agent.publish, placement),
        names.ENV_PEERS: _json(peers(fleet, name, placement)),
        names.ENV_ALLOWED_HOSTS: ",".join(allowed_hosts(fleet, names.slug(name), address, published=published)),
    }
    if keeps_conversations(fleet, name):
        env[names.ENV_CONVERSATIONS] = f"{STATE[placement]}/conversations.db"
    models = [
        peer
        for peer in sorted(agent.depends_on)
        if peer in fleet.services and fleet.services[peer].provides == "openai"
    ]
    env |= _telemetry_env(fleet)
    if models:
        env[names.ENV_OPENAI_BASE_URL] = f"http://{authority(fleet, models[0], placement)}/v1"
    return env | agent.env


def keeps_conversations(fleet: Fleet, name: str) -> bool:
    """Whether an agent has conversations and a file for them."""
    agent = fleet.agent(name)
    return bool(agent.keep_conversations) and agent.instance_scope != "request"


def _telemetry_env(fleet: Fleet) -> dict[str, str]:
    """OpenTelemetry's own variables, and the one of ours."""
    telemetry = fleet.telemetry
    if telemetry is None:
        return {}
    env = {names.ENV_OTLP_ENDPOINT: telemetry.otlp_endpoint}
    if telemetry.sample < 1:
        env |= {names.ENV_SAMPLER: "parentbased_traceidratio", names.ENV_SAMPLER_RATIO: f"{telemetry.sample:g}"}
    if telemetry.content:
        env[names.ENV_TRACE_CONTENT] = "true"
    return env


def service_env(fleet: Fleet, name: str, placement: Placement) -> dict[str, str]:
    """Environment of a companion service."""
    service = fleet.services[name]
    env = {
        names.ENV_BIND: _bind(service.port, None, placement),
        names.ENV_SERVICE: name,
        names.ENV_ALLOWED_HOSTS: ",".join(allowed_hosts(fleet, names.slug(name))),
    }
    return env | service.env


def registry_env(fleet: Fleet, placement: Placement) -> dict[str, str]:
    """Environment of the registry: as processes it is handed addresses, in containers it asks DNS."""
    env = {
        names.ENV_BIND: _bind(fleet.registry_port, fleet.registry.publish, placement),
        names.ENV_ALLOWED_HOSTS: ",".join(registry_hosts(fleet)),
    }
    if fleet.registry.registration and fleet.registry.registration.store:
        env[names.ENV_REGISTRATIONS] = f"{STATE[placement]}/registrations.db"
    if placement == "local":
        env[names.ENV_ADDRESSES] = _json({name: authority(fleet, name, placement) for name in sorted(fleet.agents)})
    return env


def registry_hosts(fleet: Fleet) -> list[str]:
    """`allowed_hosts` of the registry."""
    publish = fleet.registry.publish
    return allowed_hosts(fleet, names.REGISTRY, _reached_at(publish), published=bool(publish))


def allowed_hosts(fleet: Fleet, host_name: str, address: str = LOOPBACK, *, published: bool = False) -> list[str]:
    """Host headers an endpoint accepts: its DNS name, its addresses, and the hosts people reach it by; any port."""
    outside = urlsplit(public_url(fleet, host_name, 0)).hostname if published and fleet.public_url else None
    hosts = sorted({host_name, "localhost", LOOPBACK, address, fleet.host, outside or fleet.host})
    return [pattern for host in hosts for pattern in (host, f"{host}:*")]


def _bind(port: int, publish: bool | str | None, placement: Placement) -> str:
    if placement == "container":
        return f"0.0.0.0:{names.CONTAINER_PORT}"
    address = bind_address(publish)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
