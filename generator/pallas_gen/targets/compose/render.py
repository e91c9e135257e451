"""Plan -> compose.yaml: one flat file, nothing left to fill in. Compose 2.24 and Engine 25 or later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import PurePosixPath
from typing import Any

from pallas_contract import names
from pallas_contract.fleet.base import Resources
from pallas_contract.launch.program import START_PERIOD
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import GRACE_SECONDS, LISTENING, Plan, Workload
from pallas_gen.project import contents
from pallas_gen.project.contents import Contents
from pallas_gen.targets.compose import FILE, subnets

USER = "10001:10001"
LABEL = "io.pallas-kit"
CONTENT_LABEL = f"{LABEL}.content"
RECORD = "x-pallas-files"
"""Digest of each file and folder that was mounted when compose.yaml was written. Compose passes over it; by it
`pallas-gen verify` can name what changed."""
_NOTE = "Images that are not here: `pallas-gen build`."
NOT_BUILT_HERE = "this image is made by pallas-gen build, not by compose build or up --build"
"""No folder: what compose says of a missing image is `unable to prepare context: path "..." not found`."""
TELEMETRY = "telemetry"
"""Network of the agents and a collector that the user puts there. Docker answers for a name from the first of a
container's networks by name (measured: Engine 26), so this one must sort behind those of the calls: on it no agent
listens."""

WAIT_SECONDS = 5
"""How long a health check waits for an answer."""

Tree = dict[str, Any]


class NoProjectName(Exception):
    """Nothing of the fleet's name can stand in the name of a compose project."""


def render(plan: Plan, project: PurePosixPath, mounted: Contents) -> dict[PurePosixPath, str]:
    """Render the files of a compose deployment; `project` is the way from them to the folder of agents.yaml.

    `mounted` are digests of what lies there, since compose looks at the paths of what it mounts only: a container whose
    digest changed is made anew by `up`.

    Raises:
        subnets.PoolExhausted: the fleet's address pool is too small.
        NoProjectName: the fleet's name has no letter or digit that compose takes.
    """
    networks = _networks_with_hosts(plan)
    written = services(plan, project)
    for host, digest in contents.received(plan, mounted).items():
        written[host]["labels"][CONTENT_LABEL] = digest
    document: Tree = {"name": project_name(plan.name), "services": written}
    if networks:
        document["networks"] = _networks(plan, networks)
    if secrets := _secrets(plan, project):
        document["secrets"] = secrets
    states: Tree = {_state_name(workload): {} for workload in plan.workloads if workload.state}
    if states:
        document["volumes"] = states
    document[RECORD] = contents.by_entry(plan, mounted)
    return {FILE: yaml_out.dump(document, source=plan.source, override="compose.override.yaml", note=_NOTE)}


def services(plan: Plan, project: PurePosixPath) -> dict[str, Tree]:
    """Return the services of the compose file by host, without the digests of what they mount."""
    joined = _joined(plan)
    return {workload.host: _service(plan, workload, project, joined[workload.host]) for workload in plan.workloads}


def networks_of(plan: Plan) -> dict[str, list[str]]:
    """Return the networks that each program joins, by host; none where all are on the default one."""
    return {host: list(networks) for host, networks in _joined(plan).items()}


def _joined(plan: Plan) -> dict[str, dict[str, list[str]]]:
    """Return the networks that each program joins, sorted, with all hosts on them."""
    joined: dict[str, dict[str, list[str]]] = {workload.host: {} for workload in plan.workloads}
    for network, hosts in sorted(_networks_with_hosts(plan).items()):
        for host in hosts:
            joined[host][network] = hosts
    return joined


def _networks_with_hosts(plan: Plan) -> dict[str, list[str]]:
    return _members(plan) if plan.isolated else {}


def _service(plan: Plan, workload: Workload, project: PurePosixPath, networks: dict[str, list[str]]) -> Tree:
    """Return one service. `networks` are those it joins, sorted by name, with the hosts on each."""
    service: Tree = {
        "image": workload.image,
        **_origin(plan, workload),
        **_start(workload),
        "environment": dict(sorted(({**workload.env, **_listen_on(plan, workload, networks)}).items())),
    }
    if published := _published(workload):
        address, port = published
        port_entry = {"target": names.CONTAINER_PORT, "host_ip": address, "published": str(port), "protocol": "tcp"}
        service["ports"] = [port_entry]
    if workload.waits_for:
        service["depends_on"] = {host: {"condition": _gate(plan.workload(host))} for host in workload.waits_for}
    if networks:
        service["networks"] = {network: _joining(plan, workload, network, hosts) for network, hosts in networks.items()}
    if volumes := _volumes(workload, plan, project):
        service["volumes"] = volumes
    if workload.secrets:
        service["secrets"] = [
            {"source": _secret_name(secret.file), "target": secret.target} for secret in workload.secrets
        ]
    if test := _health_test(workload):
        service["healthcheck"] = _healthcheck(test, waits=workload.foreign is None)
    service["restart"] = "unless-stopped"
    service["stop_grace_period"] = f"{GRACE_SECONDS}s"
    service["deploy"] = ({"replicas": workload.replicas} if workload.replicas > 1 else {}) | _limits(workload.resources)
    labels = {f"{LABEL}.kind": workload.kind, f"{LABEL}.name": workload.name}
    service["labels"] = labels | dict(sorted(workload.labels.items()))
    return service | _hardening(workload)


def _origin(plan: Plan, workload: Workload) -> Tree:
    """Return what keeps compose from asking a registry for an image that `pallas-gen build` makes here.

    A name without a slash is one of Docker's own library, where nobody has it: `up` ended in "pull access denied". An
    image that cannot be pulled is built, and where compose cannot it says the path of the context (decision 0030).
    """
    if workload.image not in plan.own_images or "/" in workload.image:
        return {}
    return {"pull_policy": "never", "build": {"context": NOT_BUILT_HERE}}


def _start(workload: Workload) -> Tree:
    """Return how the program is started: an image of somebody else's knows that best itself."""
    if workload.foreign is None:
        return {"command": list(workload.command), "working_dir": names.PROJECT_DIR}
    parts = {"entrypoint": list(workload.foreign.entrypoint), "command": list(workload.command)}
    return {key: value for key, value in parts.items() if value} | {"expose": [str(workload.port)]}


def _gate(workload: Workload) -> str:
    """Return what whoever depends on it waits for."""
    return "service_healthy" if _health_test(workload) else "service_started"


def _published(workload: Workload) -> tuple[str, int] | None:
    # several containers cannot share one host port
    return workload.published if workload.replicas == 1 else None


def _hardening(workload: Workload) -> Tree:
    foreign = workload.foreign
    # in memory, and so within its limit of memory
    size = workload.resources.memory.replace("Mi", "m").replace("Gi", "g")
    writable = [f"{path}:size={size},mode=1777,noexec,nosuid,nodev" for path in (foreign.writable if foreign else ())]
    return {
        "user": f"{foreign.user}:{foreign.user}" if foreign else USER,
        "init": True,  # reaps what stdio servers leave behind
        "read_only": True,
        "tmpfs": ["/tmp:size=64m,mode=1777,noexec,nosuid,nodev", *writable],  # noqa: S108
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "logging": {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}},
    }


def _health_test(workload: Workload) -> list[str]:
    """Return what Docker runs in the container; nothing where only others can ask."""
    if workload.foreign:
        return ["CMD", *workload.foreign.health_command] if workload.foreign.health_command else []
    # -P: no module of the project may stand in for one of ours
    return ["CMD", "python", "-P", "-m", "pallas_contract", "--wait", f"{WAIT_SECONDS}", workload.health_url]


def _healthcheck(test: list[str], *, waits: bool) -> Tree:
    return {
        "test": test,
        # A check is a process of its own in the container: 0.1 s of a core, most of it the engine's.
        "interval": "10s",
        # what it waits, and 5 s to begin on a machine that starts twenty containers
        "timeout": f"{WAIT_SECONDS + 5}s",
        "retries": 3,
        "start_period": f"{START_PERIOD['container']:g}s",
        # A check that waits begins then, and ends when the program answers: others wait for that.
        "start_interval": "1s" if waits else "2s",
    }


def _limits(resources: Resources) -> Tree:
    memory = resources.memory.replace("Mi", "M").replace("Gi", "G")  # Docker's M is already the binary one
    return {"resources": {"limits": {"cpus": f"{resources.cpus:g}", "memory": memory, "pids": resources.pids}}}


def _volumes(workload: Workload, plan: Plan, project: PurePosixPath) -> list[Tree]:
    mounts: list[Tree] = []
    if workload.needs_code:
        # agents.yaml is no business of somebody else's program
        handed = workload.files if workload.foreign else (*plan.config, *workload.files)
        if workload.kind == "registry":
            handed = (*handed, *plan.lock)
        paths = sorted(path.rstrip("/") for path in handed)
        mounts = [_bind(str(project / path), f"{names.PROJECT_DIR}/{path}") for path in paths]
    if workload.state:
        mounts.append({"type": "volume", "source": _state_name(workload), "target": names.STATE_DIR})
    return mounts


def _state_name(workload: Workload) -> str:
    # compose puts the project's name before it
    return f"{workload.host}-state"


def _bind(source: str, target: str) -> Tree:
    return {
        "type": "bind",
        "source": source,
        "target": target,
        "read_only": True,
        # a missing file is an error then, and not a folder that root makes
        "bind": {"create_host_path": False},
    }


def _joining(plan: Plan, workload: Workload, network: str, hosts: list[str]) -> Tree:
    """Return how a workload joins a network: a called agent has an alias there for each caller, to listen on."""
    listens = workload.kind in LISTENING and network != TELEMETRY
    callers = _callers(plan, workload.host, hosts) if listens else []
    return {"aliases": [_caller_alias(host) for host in callers]} if callers else {}


def _listen_on(plan: Plan, workload: Workload, networks: dict[str, list[str]]) -> dict[str, str]:
    """Return the variable that makes an agent listen on the networks of its callers only."""
    # a bridge carries both directions: listening everywhere, an agent could be called back along its own call
    callers = [
        host
        for network, hosts in networks.items()
        if network != TELEMETRY
        for host in _callers(plan, workload.host, hosts)
    ]
    if workload.kind not in LISTENING or not callers:
        return {}
    return {names.ENV_LISTEN_ON: ",".join(_caller_alias(host) for host in sorted(callers))}


def _callers(plan: Plan, host: str, hosts: list[str]) -> list[str]:
    """Return the hosts that call `host` on a network of `hosts`: where two call each other there is one for both."""
    if hosts[-1] == host:
        return hosts[:-1]
    return [hosts[-1]] if len(hosts) == 2 and (hosts[-1], host) in plan.edges else []


def _caller_alias(host: str) -> str:
    # no agent can have this name: theirs have no dot
    return f"from.{host}"


def _members(plan: Plan) -> dict[str, list[str]]:
    """Return network name -> hosts on it, the called one last: one per agent, for the registry, and one per call.

    A service has its egress on a network of its own, so that the registry, which asks it on another, gets none.
    """
    # hosts have no dot in them, so no two pairs give the same name
    members = {names.REGISTRY: [names.REGISTRY]}
    for workload in plan.workloads:
        if workload.kind in LISTENING:
            members[f"{workload.kind}.{workload.host}"] = [names.REGISTRY, workload.host]
        elif workload.kind == "service" and workload.egress:
            members[f"service.{workload.host}"] = [workload.host]
    if traced := [workload.host for workload in plan.workloads if workload.collector and workload.collector.beside]:
        members[TELEMETRY] = traced
    services = {workload.host for workload in plan.workloads if workload.kind == "service"}
    probes = [(names.REGISTRY, host) for host in plan.workload(names.REGISTRY).calls if host in services]
    # Two that call each other share one network, on which both listen: of two, Docker's DNS would choose by name.
    second = {*services, names.GATEWAY}
    # the gateway asks the registry on the network on which it is probed
    asked = [edge for edge in plan.edges if edge[1] != names.REGISTRY]
    calls = [edge for edge in asked if edge[1] not in second or edge[::-1] not in plan.edges]
    return members | {f"call.{caller}.{called}": [caller, called] for caller, called in (*calls, *probes)}


def _networks(plan: Plan, members: dict[str, list[str]]) -> Tree:
    """Return the networks; only for a workload that publishes a port or needs the world one is open to the outside."""
    sizes = {network: sum(plan.workload(host).replicas for host in hosts) for network, hosts in members.items()}
    # Docker's own pools end near 31 networks for the whole host
    ranges = subnets.allocate(plan.name, sizes, IPv4Network(plan.pool))
    networks: Tree = {}
    for network, hosts in sorted(members.items()):
        networks[network] = {} if _is_open(network, plan.workload(hosts[-1])) else {"internal": True}
        networks[network]["ipam"] = {"config": [{"subnet": str(ranges[network])}]}
    return networks


def _is_open(network: str, owner: Workload) -> bool:
    """Return whether a network leads out of the fleet."""
    if network == TELEMETRY or network.startswith("call."):
        return False
    # a network cannot be opened for one address only, so a collector outside opens it as egress does
    outside = owner.collector is not None and not owner.collector.beside
    return _published(owner) is not None or bool(owner.egress) or outside


def _secrets(plan: Plan, project: PurePosixPath) -> Tree:
    files: Iterable[str] = sorted({secret.file for workload in plan.workloads for secret in workload.secrets})
    return {_secret_name(file): {"file": file if file.startswith("/") else str(project / file)} for file in files}


def _secret_name(file: str) -> str:
    """Return a key for `secrets`: the path, made a name; where that changes it, a hash keeps two of them apart."""
    name = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in file).strip(".")
    return name if name == file else f"{name}-{hashlib.sha256(file.encode()).hexdigest()[:8]}"


def project_name(name: str) -> str:
    """Return the name of the compose project: two fleets of one name would take each other's containers."""
    # compose allows lower-case letters, digits, `-` and `_`, starting with a letter or digit
    cleaned = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in name.lower())
    project = cleaned.strip("-_")
    if not project:
        raise NoProjectName(name)
    lost = any(char.isalnum() and not char.isascii() for char in name)
    return f"{project}-{hashlib.sha256(name.encode()).hexdigest()[:6]}" if lost else project
