"""How a program of the fleet is started: command and environment, the same rules on every target.

In a container everything listens on one port and is found by DNS; as processes on one machine everything listens on
the port agents.yaml gives it (seed 001). Nothing else differs between the two placements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pallas_contract import names
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses
from pallas_contract.launch.addresses import Placement

STATE: Mapping[Placement, str] = {"container": names.STATE_DIR, "local": ".pallas"}
"""Folder of what is kept over a restart: a volume, or beside agents.yaml."""


def peers(fleet: ResolvedFleet, name: str, placement: Placement) -> dict[str, str]:
    """The MCP URLs of what an agent depends on, by name."""
    callable_ = [
        peer for peer in fleet.agents[name].depends_on if peer in fleet.agents or fleet.services[peer].provides == "mcp"
    ]
    return {peer: addresses.mcp_url(fleet, peer, placement) for peer in sorted(callable_)}


def agent_command(name: str) -> list[str]:
    """Arguments after the interpreter: one agent, no registry (seed 001, Single agent mode).

    `-P` keeps the project folder, which is the working directory, from shadowing modules of ours.
    """
    return ["-P", "-m", "pallas_agent_runtime", "--agent", name]


def service_command(fleet: ResolvedFleet, name: str) -> list[str]:
    return ["-m", fleet.services[name].module, *fleet.services[name].args]


def registry_command() -> list[str]:
    return ["-P", "-m", "pallas_registry"]


def agent_env(fleet: ResolvedFleet, name: str, placement: Placement) -> dict[str, str]:
    """Environment of an agent; what the user set in `env` wins."""
    agent = fleet.agents[name]
    address, published = addresses.local_address(fleet, name), bool(agent.publish)
    env = {
        names.ENV_BIND: addresses.bind(agent.port, agent.publish, placement),
        names.ENV_PEERS: _json(peers(fleet, name, placement)),
        names.ENV_ALLOWED_HOSTS: ",".join(
            addresses.allowed_hosts(fleet, names.slug(name), address, published=published)
        ),
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
        env[names.ENV_OPENAI_BASE_URL] = f"http://{addresses.authority(fleet, models[0], placement)}/v1"
    return env | agent.env


def keeps_conversations(fleet: ResolvedFleet, name: str) -> bool:
    """Whether an agent has conversations and a file for them."""
    agent = fleet.agents[name]
    return bool(agent.keep_conversations) and agent.instance_scope != "request"


def _telemetry_env(fleet: ResolvedFleet) -> dict[str, str]:
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


def service_env(fleet: ResolvedFleet, name: str, placement: Placement) -> dict[str, str]:
    """Environment of a companion service."""
    service = fleet.services[name]
    env = {
        names.ENV_BIND: addresses.bind(service.port, None, placement),
        names.ENV_SERVICE: name,
        names.ENV_ALLOWED_HOSTS: ",".join(addresses.allowed_hosts(fleet, names.slug(name))),
    }
    return env | service.env


def registry_env(fleet: ResolvedFleet, placement: Placement) -> dict[str, str]:
    """Environment of the registry: as processes it is handed addresses, in containers it asks DNS."""
    env = {
        names.ENV_BIND: addresses.bind(fleet.registry_port, fleet.registry.publish, placement),
        names.ENV_ALLOWED_HOSTS: ",".join(addresses.registry_hosts(fleet)),
    }
    if fleet.registry.registration and fleet.registry.registration.store:
        env[names.ENV_REGISTRATIONS] = f"{STATE[placement]}/registrations.db"
    if placement == "local":
        env[names.ENV_ADDRESSES] = _json(
            {name: addresses.authority(fleet, name, placement) for name in sorted(fleet.agents)}
        )
    return env


def _json(value: Mapping[str, str]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
