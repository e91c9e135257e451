"""Plan -> compose.yaml: one flat file, nothing left to fill in. Compose 2.24 and Engine 25 or later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import PurePosixPath
from typing import Any

from pallas_contract import names
from pallas_contract.fleet.model import Resources
from pallas_gen.output import yaml as yaml_out
from pallas_gen.plan import GRACE_SECONDS, Plan, Workload
from pallas_gen.targets.compose import subnets

FILE = PurePosixPath("compose.yaml")
USER = "10001:10001"
LABEL = "io.pallas-kit"
TELEMETRY = "telemetry"
"""Network of the agents and a collector that the user puts there. Docker answers for a name from the first of a
container's networks by name (measured: Engine 26), so this one must sort behind those of the calls: on it no agent
listens."""

Tree = dict[str, Any]


def render(plan: Plan, project: PurePosixPath) -> dict[PurePosixPath, str]:
    """The files of a compose deployment; `project` is the way from them to the folder of agents.yaml.

    Raises:
        subnets.PoolExhausted: the fleet's address pool is too small.
    """
    networks = _members(plan) if plan.isolated else {}
    joined: dict[str, dict[str, list[str]]] = {item.host: {} for item in plan.workloads}
    for network, hosts in sorted(networks.items()):
        for host in hosts:
            joined[host][network] = hosts
    document: Tree = {
        "name": _project_name(plan.name),
        "services": {item.host: _service(plan, item, project, joined[item.host]) for item in plan.workloads},
    }
    if networks:
        document["networks"] = _networks(plan, networks)
    if secrets := _secrets(plan, project):
        document["secrets"] = secrets
    states: Tree = {_state_name(item): {} for item in plan.workloads if item.state}
    if states:
        document["volumes"] = states
    return {FILE: yaml_out.dump(document, source=plan.source, override="compose.override.yaml")}


def _service(plan: Plan, item: Workload, project: PurePosixPath, networks: dict[str, list[str]]) -> Tree:
    """One service. `networks` are those it joins, sorted by name, with the hosts on each."""
    out: Tree = {
        "image": item.image,
        "command": list(item.command),
        "working_dir": names.PROJECT_DIR,
        "environment": dict(sorted(({**item.env, **_listen_on(item, networks)}).items())),
    }
    if published := _published(item):
        address, port = published
        port_entry = {"target": names.CONTAINER_PORT, "host_ip": address, "published": str(port), "protocol": "tcp"}
        out["ports"] = [port_entry]
    if item.waits_for:
        out["depends_on"] = {host: {"condition": "service_healthy"} for host in item.waits_for}
    if networks:
        out["networks"] = {network: _joining(item, network, hosts) for network, hosts in networks.items()}
    if volumes := _volumes(plan, item, project):
        out["volumes"] = volumes
    if item.secrets:
        out["secrets"] = [{"source": _secret_name(secret.file), "target": secret.target} for secret in item.secrets]
    out["healthcheck"] = _healthcheck(item)
    out["restart"] = "unless-stopped"
    out["stop_grace_period"] = f"{GRACE_SECONDS}s"
    out["deploy"] = ({"replicas": item.replicas} if item.replicas > 1 else {}) | _limits(item.resources)
    out["labels"] = {f"{LABEL}.kind": item.kind, f"{LABEL}.name": item.name} | dict(sorted(item.labels.items()))
    return out | _hardening()


def _published(item: Workload) -> tuple[str, int] | None:
    """One host port cannot be shared by several containers."""
    return item.published if item.replicas == 1 else None


def _hardening() -> Tree:
    return {
        "user": USER,
        "init": True,
        "read_only": True,
        "tmpfs": ["/tmp:size=64m,mode=1777,noexec,nosuid,nodev"],  # noqa: S108
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "logging": {"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}},
    }


def _healthcheck(item: Workload) -> Tree:
    return {
        "test": ["CMD", "python", "-P", "-m", "pallas_contract", item.health_url],
        "interval": "10s",
        "timeout": "5s",
        "retries": 3,
        "start_period": "120s",
        "start_interval": "1s",
    }


def _limits(resources: Resources) -> Tree:
    memory = resources.memory.replace("Mi", "M").replace("Gi", "G")  # Docker's M is already the binary one
    return {"resources": {"limits": {"cpus": f"{resources.cpus:g}", "memory": memory, "pids": resources.pids}}}


def _volumes(plan: Plan, item: Workload, project: PurePosixPath) -> list[Tree]:
    out: list[Tree] = []
    if item.needs_code:
        out = _folder(plan, project) if item.kind == "registry" else _entries(plan, project)
    return [*out, {"type": "volume", "source": _state_name(item), "target": names.STATE_DIR}] if item.state else out


def _state_name(item: Workload) -> str:
    """Compose puts the project's name before it."""
    return f"{item.host}-state"


def _entries(plan: Plan, project: PurePosixPath) -> list[Tree]:
    """The project's code and configuration without its secrets."""
    return [_bind(str(project / name), f"{names.PROJECT_DIR}/{name}") for name in plan.entries]


def _folder(plan: Plan, project: PurePosixPath) -> list[Tree]:
    """The whole folder, for the registry, which watches the fleet file.

    An editor's rename would leave a file mounted alone on its old inode. Folders with secrets are covered by an empty
    one, secrets beside the fleet file by an empty file.
    """
    out = [_bind(str(project), names.PROJECT_DIR)]
    tops = sorted({file.partition("/")[0] for file in plan.hidden if "/" in file})
    out += [{"type": "tmpfs", "target": f"{names.PROJECT_DIR}/{top}", "read_only": True} for top in tops]
    return out + [_bind("/dev/null", f"{names.PROJECT_DIR}/{file}") for file in plan.hidden if "/" not in file]


def _bind(source: str, target: str) -> Tree:
    return {
        "type": "bind",
        "source": source,
        "target": target,
        "read_only": True,
        "bind": {"create_host_path": False},
    }


def _joining(item: Workload, network: str, hosts: list[str]) -> Tree:
    """How a workload joins a network: what is called on it has a name there that says from whom."""
    called = item.kind == "agent" and hosts[-1] == item.host and network != TELEMETRY
    callers = hosts[:-1] if called else []
    return {"aliases": [_caller_alias(host) for host in callers]} if callers else {}


def _listen_on(item: Workload, networks: dict[str, list[str]]) -> dict[str, str]:
    """A bridge carries both directions, so an agent listens only where its callers are, not where it calls."""
    callers = [
        host
        for network, hosts in networks.items()
        if item.host == hosts[-1] and network != TELEMETRY
        for host in hosts[:-1]
    ]
    if item.kind != "agent" or not callers:
        return {}
    return {names.ENV_LISTEN_ON: ",".join(_caller_alias(host) for host in sorted(callers))}


def _caller_alias(host: str) -> str:
    """A name that no agent can have: theirs have no dot."""
    return f"from.{host}"


def _members(plan: Plan) -> dict[str, list[str]]:
    """Network name -> hosts on it, the called one last: one per agent, for the registry, and one per declared call.

    Hosts have no dot in them, so no two pairs give the same name.
    """
    out = {names.REGISTRY: [names.REGISTRY]}
    for item in plan.workloads:
        if item.kind == "agent":
            out[f"agent.{item.host}"] = [names.REGISTRY, item.host]
        elif item.kind == "service" and item.egress:
            out[f"service.{item.host}"] = [item.host]
    if traced := [item.host for item in plan.workloads if item.collector and item.collector.beside]:
        out[TELEMETRY] = traced
    return out | {f"call.{caller}.{called}": [caller, called] for caller, called in plan.edges}


def _networks(plan: Plan, members: dict[str, list[str]]) -> Tree:
    """A network is open to the outside only for a workload that publishes a port or needs the world."""
    sizes = {network: sum(plan.workload(host).replicas for host in hosts) for network, hosts in members.items()}
    ranges = subnets.allocate(plan.name, sizes, IPv4Network(plan.pool))
    out: Tree = {}
    for network, hosts in sorted(members.items()):
        out[network] = {} if _is_open(network, plan.workload(hosts[-1])) else {"internal": True}
        out[network]["ipam"] = {"config": [{"subnet": str(ranges[network])}]}
    return out


def _is_open(network: str, owner: Workload) -> bool:
    """A network cannot be opened for one address only, so a collector outside opens it as `egress` does."""
    if network == TELEMETRY or network.startswith("call."):
        return False
    outside = owner.collector is not None and not owner.collector.beside
    return _published(owner) is not None or owner.egress or outside


def _secrets(plan: Plan, project: PurePosixPath) -> Tree:
    files: Iterable[str] = sorted({secret.file for item in plan.workloads for secret in item.secrets})
    return {_secret_name(file): {"file": file if file.startswith("/") else str(project / file)} for file in files}


def _secret_name(file: str) -> str:
    """A key for the `secrets` section: the path; where compose does not allow it in a name, told apart by a hash."""
    name = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in file).strip(".")
    return name if name == file else f"{name}-{hashlib.sha256(file.encode()).hexdigest()[:8]}"


def _project_name(name: str) -> str:
    """Compose allows lower-case letters, digits, `-` and `_`, starting with a letter or digit."""
    cleaned = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in name.lower())
    return cleaned.strip("-_") or "pallas"
