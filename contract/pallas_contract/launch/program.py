"""Every program of a fleet: command, environment, secrets, probe and order, the same rules on every target.

In a container everything listens on one port and is found by DNS; as processes on one machine everything listens on
the port agents.yaml gives it (seed 001). Nothing else differs between the two placements.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.launch import addresses, secret_files
from pallas_contract.launch.addresses import Placement
from pallas_contract.launch.secret_files import Secret

Kind = Literal["agent", "service", "registry", "gateway"]

STATE: Mapping[Placement, str] = {"container": names.STATE_DIR, "local": ".pallas"}
"""Folder of what outlives a restart: a volume, or beside agents.yaml."""

_SERVICE_STATE: Mapping[Placement, str] = {"container": STATE["container"], "local": f"{STATE['local']}/services"}
"""Of the services of a machine each has a folder in there, so that none is where the kit keeps its own."""
_GATEWAY_STATE: Mapping[Placement, str] = {"container": STATE["container"], "local": f"{STATE['local']}/gateway"}

START_PERIOD: Mapping[Placement, float] = {"container": 120.0, "local": 60.0}
"""Seconds from its start in which a program that is not up is starting, and not down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program of the fleet, as a process or in a container; what it is allowed is for a target to grant."""

    name: str
    kind: Kind
    command: tuple[str, ...]
    """Arguments after the interpreter; of an image its own arguments, or as a process the whole command line."""
    env: Mapping[str, str] = field(repr=False)
    """What it is told; without its secrets, and without the path of agents.yaml, which is the target's."""
    secrets: tuple[Secret, ...] = ()
    """Sorted by target."""
    health_url: str
    """What a probe asks in the program's own container or on its machine."""
    health_paths: tuple[str, str] | None = None
    """Paths answered to GET with 200 while it is alive, and while it can serve. None: only MCP can tell."""
    needs: tuple[str, ...] = ()
    """Names of the programs that must be ready before this one starts, sorted."""
    state: bool = False
    """Whether it has files that outlive a restart."""

    @property
    def host(self) -> str:
        """Host name inside the fleet."""
        return names.slug(self.name)

    def values(self) -> dict[str, Any]:
        """Return what it is made of, by field, for a type that adds to it."""
        return {field.name: getattr(self, field.name) for field in fields(Program)}


def programs(fleet: ResolvedFleet, placement: Placement) -> list[Program]:
    """Return the registry, the gateway, the services and the agents of `fleet`, in the file's order."""
    return [
        registry(fleet, placement),
        *([gateway(fleet, fleet.gateway, placement)] if fleet.gateway else []),
        *(service(fleet, name, placement) for name in fleet.services if addresses.is_started(fleet, name, placement)),
        *(agent(fleet, name, placement) for name in fleet.agents),
    ]


def agent(fleet: ResolvedFleet, name: str, placement: Placement) -> Program:
    """Return the program of one agent (seed 001, Single agent mode)."""
    return Program(
        name=name,
        kind="agent",
        # `-P` keeps the project folder, which is the working directory, from shadowing modules of ours.
        command=("-P", "-m", "pallas_agent_runtime", "--agent", name),
        env=_agent_env(fleet, fleet.agents[name], placement),
        secrets=secret_files.of_agent(fleet, name),
        health_url=addresses.health_url(fleet, name, placement),
        health_paths=(names.LIVE_PATH, names.READY_PATH),
        needs=tuple(sorted(_needs(fleet, name, placement))),
        state=_keeps_conversations(fleet.agents[name]),
    )


def service(fleet: ResolvedFleet, name: str, placement: Placement) -> Program:
    """Return the program of one companion service."""
    written = fleet.services[name]
    if written.image:
        return _image(fleet, name, placement)
    env = {
        names.ENV_BIND: addresses.bind(written.port, None, placement),
        names.ENV_SERVICE: name,
        names.ENV_ALLOWED_HOSTS: ",".join(addresses.allowed_hosts(fleet, names.slug(name))),
    }
    if written.calls:
        env[names.ENV_PEERS] = _json({peer: addresses.mcp_url(fleet, peer, placement) for peer in written.calls})
    if written.state:
        folder = _SERVICE_STATE[placement]
        env[names.ENV_STATE] = f"{folder}/{names.slug(name)}" if placement == "local" else folder
    models = (addresses.MODELS_PATH, addresses.MODELS_PATH)
    # A container has files where a process has variables: the module reads the same on all targets.
    starter = ("pallas_service.with_secrets",) if written.secrets and placement == "container" else ()
    return Program(
        name=name,
        kind="service",
        # Without `-P`: the module is the user's own, and is found in the project folder.
        command=("-m", *starter, written.module or "", *written.args),
        env=env | written.env,
        secrets=secret_files.of_service(fleet, name),
        health_url=addresses.health_url(fleet, name, placement),
        health_paths=models if written.provides == "openai" else None,
        state=written.state,
    )


def _image(fleet: ResolvedFleet, name: str, placement: Placement) -> Program:
    """Return the program of a service that is somebody's image, or the command that stands for it as a process."""
    written = fleet.services[name]
    url = addresses.health_url(fleet, name, placement)
    path = urlsplit(url).path
    # MCP is not asked with GET, and nothing in a foreign image could ask in MCP.
    by_get = url.startswith("http") and (written.health is not None or written.provides == "openai")
    if placement == "local":
        command = tuple(part.replace("${PORT}", str(written.port)) for part in written.command)
        env = {names.ENV_BIND: addresses.bind(written.port, None, placement), names.ENV_SERVICE: name}
    else:
        command = tuple(written.args)
        env = {f"{key}_FILE": f"{names.SECRETS_DIR}/{key}" for key in written.secrets}
    return Program(
        name=name,
        kind="service",
        command=command,
        env=env | written.env,
        secrets=secret_files.of_service(fleet, name),
        health_url=url,
        health_paths=(path, path) if by_get else None,
    )


def registry(fleet: ResolvedFleet, placement: Placement) -> Program:
    """Return the registry's program: as processes it is handed addresses, in containers it asks DNS."""
    env: dict[str, str] = {
        names.ENV_PLACEMENT: placement,
        names.ENV_BIND: addresses.bind(fleet.registry_port, fleet.registry.publish, placement),
        names.ENV_ALLOWED_HOSTS: ",".join(addresses.registry_hosts(fleet)),
    }
    registration = fleet.registry.registration
    state = registration is not None and registration.store
    if state:
        env[names.ENV_REGISTRATIONS] = f"{STATE[placement]}/registrations.db"
    if placement == "local":
        env[names.ENV_ADDRESSES] = _json(
            {name: addresses.authority(fleet, name, placement) for name in sorted(fleet.agents)}
        )
    return Program(
        name=names.REGISTRY,
        kind="registry",
        command=("-P", "-m", "pallas_registry"),
        env=env,
        secrets=secret_files.of_registry(fleet),
        health_url=addresses.registry_health_url(fleet, placement),
        health_paths=(names.LIVE_PATH, names.READY_PATH),
        state=state,
    )


def gateway(fleet: ResolvedFleet, settings: Gateway, placement: Placement) -> Program:
    """Return the gateway's program. It waits for no agent: whoever calls one that is not up is told so."""
    state = settings.has_files
    return Program(
        name=names.GATEWAY,
        kind="gateway",
        command=("-P", "-m", "pallas_gateway"),
        env={
            names.ENV_PLACEMENT: placement,
            names.ENV_BIND: addresses.bind(settings.port, settings.publish, placement),
            names.ENV_ALLOWED_HOSTS: ",".join(addresses.gateway_hosts(fleet, settings)),
            **({names.ENV_GATEWAY_STATE: _GATEWAY_STATE[placement]} if state else {}),
            **_telemetry_env(fleet),
            **settings.env,
        },
        secrets=secret_files.of_gateway(fleet),
        health_url=addresses.gateway_health_url(settings, placement),
        health_paths=(names.LIVE_PATH, names.READY_PATH),
        state=state,
    )


def peers(fleet: ResolvedFleet, name: str, placement: Placement) -> dict[str, str]:
    """Return the MCP URLs of what an agent depends on, by name."""
    callable_ = [
        peer for peer in fleet.agents[name].depends_on if peer in fleet.agents or fleet.services[peer].provides == "mcp"
    ]
    return {peer: addresses.peer_url(fleet, peer, placement) for peer in sorted(callable_)}


def _needs(fleet: ResolvedFleet, name: str, placement: Placement) -> Iterator[str]:
    """Yield what must be ready before agent `name` starts, of what is started here at all.

    In a container it cannot see what is behind the gateway, so there it waits for the gateway alone.
    """
    required = fleet.agents[name].required
    if any(fleet.is_through(peer) for peer in required):
        yield names.GATEWAY
    for peer in required:
        if placement == "container" and fleet.is_through(peer):
            continue
        if peer in fleet.agents or addresses.is_started(fleet, peer, placement):
            yield peer


def _agent_env(fleet: ResolvedFleet, agent: ResolvedAgent, placement: Placement) -> dict[str, str]:
    """Return the environment of an agent; what the user set in `env` wins."""
    hosts = addresses.allowed_hosts(
        fleet, agent.slug, addresses.local_address(fleet, agent.name), published=bool(agent.publish)
    )
    env: dict[str, str] = {
        names.ENV_PLACEMENT: placement,
        names.ENV_BIND: addresses.bind(agent.port, agent.publish, placement),
        names.ENV_PEERS: _json(peers(fleet, agent.name, placement)),
        names.ENV_ALLOWED_HOSTS: ",".join(hosts),
    }
    if _keeps_conversations(agent):
        env[names.ENV_CONVERSATIONS] = f"{STATE[placement]}/conversations.db"
    env |= _telemetry_env(fleet)
    if fleet.telemetry and fleet.telemetry.content:
        env[names.ENV_TRACE_CONTENT] = "true"
    services = [peer for peer in sorted(agent.depends_on) if peer in fleet.services]
    models = [peer for peer in services if fleet.services[peer].provides == "openai"]
    # There is one variable, so of several such services the first by name counts.
    if models:
        env[names.ENV_OPENAI_BASE_URL] = addresses.service_url(fleet, models[0], placement)
    for peer in services:
        if fleet.services[peer].provides == "other":
            env[names.address_key(peer)] = addresses.authority(fleet, peer, placement)
    return env | agent.env


def _keeps_conversations(agent: ResolvedAgent) -> bool:
    """Return whether an agent has conversations and a file for them."""
    return agent.keep_conversations and agent.instance_scope != "request"


def _telemetry_env(fleet: ResolvedFleet) -> dict[str, str]:
    """Return OpenTelemetry's own variables."""
    telemetry = fleet.telemetry
    if telemetry is None:
        return {}
    env = {names.ENV_OTLP_ENDPOINT: telemetry.otlp_endpoint}
    # Parent-based: a trace that a caller has begun is recorded whole, or not at all.
    if telemetry.sample < 1:
        env |= {names.ENV_SAMPLER: "parentbased_traceidratio", names.ENV_SAMPLER_RATIO: f"{telemetry.sample:g}"}
    return env


def _json(value: Mapping[str, str]) -> str:
    # Sorted, so that a fleet file in another order gives the same output.
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
