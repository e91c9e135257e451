"""What is to run, decided: the one model from which every target is rendered. Pure, and ignorant of all targets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.fleet.base import SecretFile
from pallas_contract.fleet.fastagent import OFFLINE_PROVIDERS, Config
from pallas_contract.fleet.model import Resources
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses, credentials, program

Kind = Literal["agent", "service", "registry"]

GRACE_SECONDS = 40
"""Between SIGTERM and SIGKILL: longer than the 30 s an agent takes at most to finish its open calls."""


@dataclass(frozen=True, slots=True)
class Project:
    """What the project folder holds, as far as a plan depends on it. `agents_file` is the file's name in it."""

    agents_file: str = names.AGENTS_FILE
    secret_files: tuple[str, ...] = ()
    """Files shared by all agents as secrets, by name: fastagent.secrets.yaml and .env, where they exist."""
    hidden: tuple[str, ...] = ()
    """Secret files that lie in the folder, by their plain paths in it."""
    entries: tuple[str, ...] = ()
    """Files and folders directly in the folder that hold no secret."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret by reference: `file` (relative to agents.yaml, or absolute) appears to the workload as `target`."""

    target: str
    file: str


@dataclass(frozen=True, slots=True)
class Collector:
    """Where agents send their traces. `beside`: its name has no dot, so it is a neighbour of the fleet."""

    host: str
    port: int

    @property
    def beside(self) -> bool:
        return "." not in self.host and ":" not in self.host


@dataclass(frozen=True, slots=True)
class Workload:
    """One program of the fleet and everything a target must grant it, and no more."""

    name: str
    host: str
    kind: Kind
    image: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    health_url: str
    """What a probe inside the workload's own container asks."""
    health_paths: tuple[str, str] | None = None
    """Paths answered to GET with 200 while the process is alive, and while it can serve. None: only MCP can tell."""
    waits_for: tuple[str, ...] = ()
    """Hosts that must be ready before this one starts."""
    calls: tuple[str, ...] = ()
    """Hosts this one may open connections to."""
    published: tuple[str, int] | None = None
    """Address and port outside of the fleet."""
    public_url: str = ""
    """Where a reverse proxy in front of the fleet serves it, if it is published there."""
    replicas: int = 1
    stateless: bool = True
    """Whether replicas can take over from each other: nothing is kept between two calls."""
    resources: Resources = field(default_factory=Resources)
    secrets: tuple[Secret, ...] = ()
    needs_code: bool = True
    """Whether the project folder must be put into /project."""
    own_files: tuple[str, ...] = ()
    """Its module or card in the project folder; a folder ends in a slash. All other files may be anybody's."""
    egress: bool = False
    reach: tuple[str, ...] = ()
    """Hosts and networks outside of the fleet, where these are known; else `egress` is the world."""
    state: bool = False
    """Whether it keeps files in STATE_DIR over a restart."""
    collector: Collector | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    """Changes with what the program reads about itself from the fleet file, beyond command and environment."""

    def url_for_others(self) -> str:
        """What a probe in another container asks."""
        return self.health_url.replace(addresses.LOOPBACK, self.host, 1)


@dataclass(frozen=True)
class Plan:
    """The whole deployment. Of the project folder no workload may see the files `hidden`, and all may see `entries`."""

    name: str
    source: str
    version: str
    workloads: tuple[Workload, ...]
    isolated: bool
    pool: str
    hidden: tuple[str, ...]
    entries: tuple[str, ...]

    def workload(self, host: str) -> Workload:
        """The workload at `host`.

        Raises:
            KeyError: there is none.
        """
        return self._by_host[host]

    @cached_property
    def _by_host(self) -> Mapping[str, Workload]:
        return {item.host: item for item in self.workloads}

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Who may call whom, as (caller, called), sorted; the registry reaches every agent besides."""
        return sorted((item.host, peer) for item in self.workloads for peer in item.calls if item.kind != "registry")


def build_plan(fleet: ResolvedFleet, config: Config, project: Project) -> Plan:
    """Decide everything that agents.yaml leaves open. `fleet` must have passed `validate.graph_rules`."""
    agents = [_agent(fleet, config, project, name) for name in fleet.agents]
    services = [_service(fleet, name) for name in fleet.services]
    workloads = sorted([*agents, *services, _registry(fleet, project)], key=lambda item: item.host)
    return Plan(
        name=fleet.name,
        source=project.agents_file,
        version=fleet.version,
        workloads=tuple(workloads),
        isolated=fleet.networks.mode == "isolated",
        pool=str(fleet.networks.pool),
        hidden=project.hidden,
        entries=project.entries,
    )


def _agent(fleet: ResolvedFleet, config: Config, project: Project, name: str) -> Workload:
    agent = fleet.agents[name]
    peers = sorted(agent.depends_on)
    shared = [Secret(file, file) for file in project.secret_files]
    env = {names.ENV_AGENTS_CONFIG: _agents_path(project)} | program.agent_env(fleet, name, "container")
    return Workload(
        name=name,
        host=names.slug(name),
        kind="agent",
        image=fleet.image.agent,
        command=tuple(program.agent_command(name)),
        env=env,
        health_url=addresses.health_url(fleet, name, "container"),
        health_paths=(names.LIVE_PATH, names.READY_PATH),
        waits_for=tuple(names.slug(peer) for peer in peers if agent.depends_on[peer].required),
        calls=tuple(names.slug(peer) for peer in peers),
        published=(addresses.bind_address(agent.publish), agent.port) if agent.publish else None,
        public_url=_public_url(fleet, names.slug(name), agent.publish),
        replicas=agent.replicas,
        stateless=agent.instance_scope == "request",
        state=program.keeps_conversations(fleet, name),
        resources=agent.resources,
        secrets=(*shared, *_secrets({**agent.secrets, **credentials.files(fleet, name)})),
        needs_code=fleet.image.code == "mounted",
        egress=agent.egress if agent.egress is not None else _needs_egress(fleet, config, name),
        collector=_collector(fleet),
        labels=agent.labels,
        own_files=(agent.card,) if agent.card else _module_files(agent.module or ""),
        fingerprint=_fingerprint(fleet, name),
    )


def _service(fleet: ResolvedFleet, name: str) -> Workload:
    service = fleet.services[name]
    return Workload(
        name=name,
        host=names.slug(name),
        kind="service",
        image=fleet.image.agent,
        command=tuple(program.service_command(fleet, name)),
        env=program.service_env(fleet, name, "container"),
        health_url=addresses.health_url(fleet, name, "container"),
        health_paths=(addresses.MODELS_PATH, addresses.MODELS_PATH) if service.provides == "openai" else None,
        resources=service.resources,
        secrets=_secrets(service.secrets),
        needs_code=fleet.image.code == "mounted",
        own_files=_module_files(service.module),
        egress=service.egress,
    )


def _registry(fleet: ResolvedFleet, project: Project) -> Workload:
    publish, registration = fleet.registry.publish, fleet.registry.registration
    tokens = registration.tokens if registration else {}
    env = {names.ENV_AGENTS_CONFIG: _agents_path(project)} | program.registry_env(fleet, "container")
    return Workload(
        name=names.REGISTRY,
        host=names.REGISTRY,
        kind="registry",
        image=fleet.image.registry,
        command=tuple(program.registry_command()),
        env=env,
        health_url=f"http://{addresses.LOOPBACK}:{names.CONTAINER_PORT}{names.READY_PATH}",
        health_paths=(names.LIVE_PATH, names.READY_PATH),
        calls=tuple(sorted(names.slug(name) for name in fleet.agents)),
        published=(addresses.bind_address(publish), fleet.registry_port) if publish else None,
        public_url=_public_url(fleet, names.REGISTRY, publish),
        resources=fleet.registry.resources,
        secrets=tuple(Secret(names.registration_secret(name), _plain(tokens[name].file)) for name in sorted(tokens)),
        stateless=registration is None,
        state=registration is not None and registration.store,
        egress=registration is not None and bool(registration.reach),
        reach=tuple(registration.reach) if registration else (),
    )


def _public_url(fleet: ResolvedFleet, host: str, publish: bool | str | None) -> str:
    return addresses.public_url(fleet, host, 0) if fleet.public_url and publish else ""


def _collector(fleet: ResolvedFleet) -> Collector | None:
    if fleet.telemetry is None:
        return None
    url = urlsplit(fleet.telemetry.otlp_endpoint)
    return Collector(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))


def _module_files(module: str) -> tuple[str, ...]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/"


def _agents_path(project: Project) -> str:
    return f"{names.PROJECT_DIR}/{project.agents_file}"


def _fingerprint(fleet: ResolvedFleet, name: str) -> str:
    unread = {"name", "replicas", "resources", "env", "secrets", "labels"}
    own = fleet.agents[name].model_dump(mode="json", exclude=unread) | {"title": fleet.written.agents[name].title}
    shown = {key: getattr(fleet.written, key) for key in ("name", "version", "host", "namespace", "public_url")}
    trusted = {peer: fleet.agents[peer].access.model_dump(mode="json") for peer in _forwards(fleet, name)}
    return hashlib.sha256(json.dumps([shown, own, trusted], sort_keys=True).encode()).hexdigest()[:16]


def _forwards(fleet: ResolvedFleet, name: str) -> list[str]:
    """Agents whose rules decide what this one may hand on to them."""
    return [peer for peer in fleet.agents[name].access.forward if peer in fleet.agents]


def _secrets(written: Mapping[str, SecretFile]) -> tuple[Secret, ...]:
    return tuple(Secret(key, _plain(written[key].file)) for key in sorted(written))


def _plain(file: str) -> str:
    return file.removeprefix("./")


def _needs_egress(fleet: ResolvedFleet, config: Config, name: str) -> bool:
    """Whether the agent's model, one of the configured MCP servers or the keys of its callers' tokens are outside.

    Which servers a Python module uses is not known here, so every configured one counts.
    """
    peers = fleet.agents[name].depends_on
    own_model = any(peer in fleet.services and fleet.services[peer].provides == "openai" for peer in peers)
    outside_model = bool(config.provider) and config.provider not in OFFLINE_PROVIDERS and not own_model
    jwt = fleet.agents[name].access.jwt
    outside_keys = jwt is not None and jwt.jwks_url is not None
    outside_server = any(url and not fleet.is_member(server) for server, url in config.servers.items())
    return outside_model or outside_keys or outside_server
