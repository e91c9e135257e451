"""The plan of what is to run: the one model from which every target is rendered. Pure, and ignorant of all targets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet import images
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.base import Resources
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.model import Service
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.launch import addresses, service_check
from pallas_contract.launch.program import Program, programs
from pallas_contract.launch.secret_files import Secret
from pallas_gen import egress
from pallas_gen.dependencies import recipe
from pallas_gen.dependencies.recipe import BuiltImage, Needs, Recipe
from pallas_gen.dependencies.requirements import Files
from pallas_gen.dependencies.server_locks import Locks
from pallas_gen.front.door import Door, door

GRACE_SECONDS = 40
"""Between SIGTERM and SIGKILL: longer than the 30 s an agent takes at most to finish its open calls."""


LISTENING = frozenset({"agent", "gateway"})
"""Kinds of programs that listen on the networks of their callers only: they call others themselves."""


@dataclass(frozen=True, slots=True)
class Project:
    """The project folder, as far as a plan depends on it. `agents_file` is the name of the fleet file in it."""

    agents_file: str = names.AGENTS_FILE
    secret_files: tuple[str, ...] = ()
    """Files shared by all agents as secrets, by name: .env and fast-agent's secrets, where they exist."""
    hidden: tuple[str, ...] = ()
    """Secret files that lie in the folder, by their plain paths in it."""
    config: tuple[str, ...] = (names.AGENTS_FILE,)
    """The fleet file, and fast-agent's configuration where there is one: every container gets them."""
    lock: tuple[str, ...] = ()
    """agents.lock, where it is there: the registry alone gets it."""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What members and the gateway need besides, by their names; a folder that is meant whole ends in a slash."""
    definitions: Mapping[str, Definitions] = field(default_factory=dict)
    """What the code of each agent defines, by the agent's name."""
    requirements: Mapping[str, Files] = field(default_factory=dict)
    """What is installed for the project's code (by ``""``), and by the file that an agent names."""
    server_locks: Locks = field(default_factory=dict)
    """What is locked of the MCP servers on stdio."""


@dataclass(frozen=True, slots=True)
class Collector:
    """The collector of traces. `beside`: its name has no dot, so it is a neighbour of the fleet."""

    host: str
    port: int

    @property
    def beside(self) -> bool:
        return "." not in self.host and ":" not in self.host


@dataclass(frozen=True, slots=True)
class Foreign:
    """What is particular to an image that is not the kit's: nothing of ours is in it, no Python and no check."""

    provides: Literal["mcp", "openai", "other"]
    path: str
    entrypoint: tuple[str, ...] = ()
    """In place of the image's own."""
    health_command: tuple[str, ...] = ()
    """Run in the container to see whether it is up; without, it is asked from outside or not at all."""
    user: int = 10001
    writable: tuple[str, ...] = ()
    """Folders in memory that it may write to besides /tmp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Program):
    """A program in a container of its own, and everything a target must grant it, and no more."""

    image: str
    calls: tuple[str, ...] = ()
    """Hosts this one may open connections to."""
    through: tuple[str, ...] = ()
    """Of an agent the hosts that it calls through the gateway, of the gateway those that are reached by it alone."""
    published: tuple[str, int] | None = None
    """Address and port outside of the fleet."""
    public_url: str = ""
    """Where a reverse proxy in front of the fleet serves it, if it is published there."""
    replicas: int = 1
    stateless: bool = True
    """Whether replicas can take over from each other: nothing outlives a call."""
    resources: Resources = field(default_factory=Resources)
    needs_code: bool = True
    """Whether the project folder must be put into /project."""
    files: tuple[str, ...] = ()
    """What it gets of the project folder besides the configuration; a folder that is meant whole ends in a slash."""
    egress: tuple[str, ...] = ()
    """Why it may reach the world, in words; it may not where there is no reason."""
    reach: tuple[str, ...] = ()
    """Hosts and networks outside of the fleet, where these are known; else with `egress` it is the world."""
    collector: Collector | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    port: int = names.CONTAINER_PORT
    """What it listens on in its container."""
    foreign: Foreign | None = None
    """None: one of the kit's images, or made from it."""
    room: int = 0
    """Bytes that it may fill of its state, where agents.yaml says that; else 0."""
    door: Door | None = None
    """Of the gateway what it asks of callers."""
    fingerprint: str = ""
    """Changes with what the program reads about itself from the fleet file, beyond command and environment."""

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Hosts that must be ready before this one starts."""
        return tuple(names.slug(name) for name in self.needs)

    def url_for_others(self) -> str:
        """Return the URL for a probe in another container."""
        return self.health_url.replace(addresses.LOOPBACK, self.host, 1)


@dataclass(frozen=True)
class Plan:
    """The whole deployment.

    Of the project folder no workload may see the files `hidden`, all see `config`, and the registry `lock`.
    """

    name: str
    source: str
    version: str
    workloads: tuple[Workload, ...]
    isolated: bool
    pool: str
    hidden: tuple[str, ...]
    config: tuple[str, ...]
    lock: tuple[str, ...]
    base_image: str
    """The kit's agent image, from which one of the fleet is made."""
    python_image: str
    """The image with Python that the kit's are built from."""
    own_images: frozenset[str]
    """Names that `pallas-gen build` gives to what it builds: the kit's images, and those of the fleet."""
    built: tuple[BuiltImage, ...]
    """Images to build for agents and services that need more than it has, sorted."""
    recipe: Recipe
    """Everything that any of them needs, for one image with the code in it."""

    @property
    def entries(self) -> tuple[str, ...]:
        """Return everything of the project folder that programs of the kit get, sorted; none within another one."""
        files = (path for workload in self.workloads if not workload.foreign for path in workload.files)
        return _outermost({*self.config, *files})

    @property
    def foreign_entries(self) -> tuple[str, ...]:
        """Return the same of images that are not the kit's, without the configuration: they cannot be baked."""
        return _outermost({path for workload in self.workloads if workload.foreign for path in workload.files})

    def workload(self, host: str) -> Workload:
        """Return the workload at `host`.

        Raises:
            KeyError: there is none.
        """
        return self._by_host[host]

    @cached_property
    def _by_host(self) -> Mapping[str, Workload]:
        return {workload.host: workload for workload in self.workloads}

    @cached_property
    def edges(self) -> Mapping[tuple[str, str], None]:
        """Pairs (caller, called) of who may call whom, sorted; the registry reaches what it probes besides."""
        callers = [workload for workload in self.workloads if workload.kind != "registry"]
        return dict.fromkeys(sorted((caller.host, peer) for caller in callers for peer in caller.calls))


def build_plan(fleet: ResolvedFleet, config: Config, project: Project) -> Plan:
    """Decide everything that agents.yaml leaves open. `fleet` must have passed `validate.graph_rules`."""
    needs = Needs(fleet, config, project.requirements, project.definitions, project.server_locks)
    built = recipe.built_images(needs)
    workloads = [
        _with_image(_workload(fleet, config, project, program), built) for program in programs(fleet, "container")
    ]
    return Plan(
        name=fleet.name,
        source=project.agents_file,
        version=fleet.version,
        workloads=tuple(sorted(workloads, key=lambda workload: workload.host)),
        isolated=fleet.networks.mode == "isolated",
        pool=str(fleet.networks.pool),
        hidden=project.hidden,
        config=project.config,
        lock=project.lock,
        base_image=fleet.image.base,
        python_image=fleet.image.python,
        own_images=frozenset(
            {fleet.image.base, images.image_name(fleet.image.names, images.REGISTRY)}
            | {image.image for image in built.values()}
        ),
        built=tuple(sorted(set(built.values()), key=lambda image: image.image)),
        recipe=recipe.common_recipe(needs),
    )


def _with_image(workload: Workload, built: Mapping[str, BuiltImage]) -> Workload:
    """Return `workload` in the image that is built for it, if one is."""
    if workload.kind not in ("agent", "service") or workload.name not in built:
        return workload
    return replace(workload, image=built[workload.name].image)


def _workload(fleet: ResolvedFleet, config: Config, project: Project, program: Program) -> Workload:
    """Return `program` with what it is granted, the path of agents.yaml and the secret files all agents share."""
    values = program.values()
    values["files"] = project.files.get(program.name, ()) if program.kind != "registry" else ()
    values["secrets"] = tuple(replace(secret, file=secret.file.removeprefix("./")) for secret in program.secrets)
    if program.kind == "service":
        return Workload(**values | _service_grants(fleet, program.name))
    values["env"] = {names.ENV_AGENTS_CONFIG: f"{names.PROJECT_DIR}/{project.agents_file}"} | values["env"]
    if program.kind == "registry":
        return Workload(**values | _registry_grants(fleet))
    if fleet.gateway and program.kind == "gateway":
        return Workload(**values | _gateway_grants(fleet, fleet.gateway))
    values["secrets"] = (*(Secret(file, file) for file in project.secret_files), *values["secrets"])
    agent = fleet.agents[program.name]
    definitions = project.definitions.get(agent.name, Definitions())
    return Workload(
        **values | _agent_grants(fleet, agent) | {"egress": egress.reasons(fleet, config, agent, definitions)}
    )


def _agent_grants(fleet: ResolvedFleet, agent: ResolvedAgent) -> dict[str, Any]:
    peers = sorted(agent.depends_on)
    return {
        "image": agent.image or fleet.image.agent,
        "calls": tuple(dict.fromkeys(names.GATEWAY if fleet.is_through(peer) else names.slug(peer) for peer in peers)),
        "through": tuple(names.slug(peer) for peer in peers if fleet.is_through(peer)),
        "published": (addresses.bind_address(agent.publish), agent.port) if agent.publish else None,
        "public_url": _public_url(fleet, agent.slug, agent.publish),
        "replicas": agent.replicas,
        "stateless": agent.instance_scope == "request",
        "resources": agent.resources,
        "needs_code": fleet.image.code == "mounted",
        "collector": _collector(fleet),
        "labels": agent.labels,
        "fingerprint": _fingerprint(fleet, agent),
    }


def _service_grants(fleet: ResolvedFleet, name: str) -> dict[str, Any]:
    service = fleet.services[name]
    return {
        "image": service.image or fleet.image.agent,
        "calls": tuple(sorted(map(names.slug, service.calls))),
        "port": addresses.container_port(fleet, name),
        # its folder is of one process
        "stateless": not service.state,
        "foreign": _foreign(service) if service.image else None,
        "resources": service.resources,
        # an image that is not the kit's has nothing baked into it
        "needs_code": bool(service.files) if service.image else fleet.image.code == "mounted",
        "egress": (egress.EXPLICIT,) if service.egress else (),
    }


def _foreign(service: Service) -> Foreign:
    return Foreign(
        provides=service.provides,
        path=addresses.service_path(service),
        entrypoint=tuple(service.entrypoint),
        health_command=tuple(service.health.command) if service.health else (),
        user=service.user,
        writable=tuple(sorted(set(service.writable))),
    )


def _registry_grants(fleet: ResolvedFleet) -> dict[str, Any]:
    publish = fleet.registry.publish
    registration = fleet.registry.registration
    reach = tuple(registration.reach) if registration else ()
    return {
        "image": fleet.image.registry,
        "calls": tuple(sorted((*map(names.slug, fleet.agents), *service_check.checked_services(fleet)))),
        "published": (addresses.bind_address(publish), fleet.registry_port) if publish else None,
        "public_url": _public_url(fleet, names.REGISTRY, publish),
        "resources": fleet.registry.resources,
        "stateless": registration is None,
        "egress": (f"reach of registered agents: {', '.join(reach)}",) if reach else (),
        "reach": reach,
    }


def _gateway_grants(fleet: ResolvedFleet, gateway: Gateway) -> dict[str, Any]:
    registration = fleet.registry.registration
    reach = tuple(registration.reach) if registration and gateway.registered else ()
    asks = (*egress.keys(gateway.access), *egress.stores(gateway))
    called = {*gateway.agents, *gateway.tools.values(), *fleet.through, *gateway.services_of_stores}
    called |= {names.REGISTRY} if reach else set()
    return {
        # it is in the kit's agent image, whose SDK and client it needs (decision 0022)
        "image": fleet.image.agent,
        "calls": tuple(sorted(map(names.slug, called))),
        "through": tuple(sorted(map(names.slug, fleet.through))),
        "published": (addresses.bind_address(gateway.publish), gateway.port) if gateway.publish else None,
        "public_url": _public_url(fleet, names.GATEWAY, gateway.publish),
        "resources": gateway.resources,
        "replicas": gateway.replicas,
        # each replica would count for itself what a tenant may do, and only one can have the files
        "stateless": not (gateway.tenants and not gateway.counters) and not gateway.has_files,
        "room": gateway.audit.bytes if gateway.audit and not gateway.store else 0,
        "egress": (*asks, *((f"reach of registered agents: {', '.join(reach)}",) if reach else ())),
        "reach": () if asks else reach,
        "collector": _collector(fleet),
        "door": door(fleet, gateway),
        "fingerprint": _gateway_fingerprint(fleet, gateway),
    }


def _public_url(fleet: ResolvedFleet, host: str, publish: bool | str | None) -> str:
    return addresses.public_url(fleet, host, 0) if fleet.public_url and publish else ""


def _collector(fleet: ResolvedFleet) -> Collector | None:
    if fleet.telemetry is None:
        return None
    url = urlsplit(fleet.telemetry.otlp_endpoint)
    return Collector(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))


def _outermost(paths: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(path for path in paths if not any(path != top and is_in(path, top) for top in paths)))


def is_in(path: str, entry: str) -> bool:
    """Return whether `path` is what `entry` hands over, or lies in it where that is a folder."""
    return path == entry or (entry.endswith("/") and path.startswith(entry))


def _gateway_fingerprint(fleet: ResolvedFleet, gateway: Gateway) -> str:
    # without what a fleet does not have, so that no gateway starts anew for it
    optional = ("routes", "grants", "confirm", "registered", "tasks", "store", "counters")
    absent = {key for key in optional if not getattr(gateway, key)}
    settings = gateway.model_dump(mode="json", exclude={"resources", "replicas", "env", "secrets", *absent})
    if gateway.registered and fleet.registry.registration:
        settings["reach"] = fleet.registry.registration.reach
    behind = {name: fleet.agents[name].access.model_dump(mode="json") for name in fleet.behind_gateway}
    callers = {
        name: sorted(agent.name for agent in fleet.agents.values() if name in agent.depends_on)
        for name in fleet.through
    }
    for key in ("app", "services"):
        if not settings[key]:
            del settings[key]
    return digest([_shared(fleet), settings, behind, *filter(None, [callers])])


def _shared(fleet: ResolvedFleet) -> dict[str, Any]:
    return {key: getattr(fleet.written, key) for key in ("name", "version", "host", "namespace", "public_url")}


def digest(value: Any) -> str:
    """Return a short digest of data that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _fingerprint(fleet: ResolvedFleet, agent: ResolvedAgent) -> str:
    unread = {"name", "replicas", "resources", "env", "secrets", "labels", "files", "through"}
    if not agent.functions:  # a newer key: agents without it are not rolled out for it
        unread.add("functions")
    written = fleet.written.agents[agent.name]
    settings = agent.model_dump(mode="json", exclude=unread) | {"title": written.title}
    # The rules of agents that a caller's token goes on to decide whether it may.
    forward = [peer for peer in agent.access.forward if peer in fleet.agents]
    trusted = {peer: fleet.agents[peer].access.model_dump(mode="json") for peer in forward}
    return digest([_shared(fleet), settings, trusted])
