"""A compose project as docker has it, made from the plan as compose would."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pallas_gen.plan import Plan, Workload
from pallas_gen.running.tool import Done
from pallas_gen.targets.compose import render

IMAGE = {"Env": ["PATH=/bin", "PALLAS_PLACEMENT=container"], "Entrypoint": ["python"], "Cmd": ["-m", "kit"]}
FLEET = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [other], env: {COST: canary}}
  other: {module: agents.other, port: 8102, publish: false, replicas: 2, instance_scope: request}
services: {db: {image: 'postgres:17', port: 5432, provides: other, entrypoint: [start], args: [--fast]}}
"""
MEMORY = {"agent": 512, "service": 512, "registry": 256}
"""MiB of each kind, without a word in agents.yaml."""
HOST_CONFIG = {
    "ReadonlyRootfs": True,
    "CapAdd": None,
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges:true"],
    "GroupAdd": None,
    "IpcMode": "private",
    "PidMode": "",
    "Privileged": False,
    "Tmpfs": {"/tmp": "size=64m,mode=1777,noexec,nosuid,nodev"},
    "NanoCpus": 1000000000,
    "PidsLimit": 256,
    "Devices": None,
}


def published(workload: Workload) -> dict[str, Any]:
    if not workload.published or workload.replicas > 1:
        return {}
    address, port = workload.published
    return {"8080/tcp": [{"HostIp": address, "HostPort": str(port)}]}


def mounts(workload: Workload, plan: Plan, folder: Path) -> list[dict[str, Any]]:
    files = [] if workload.foreign else [*plan.config, *workload.files]
    return [
        {"Type": "bind", "Source": f"{folder}/{file}", "Destination": f"/project/{file}", "Mode": "", "RW": False}
        for file in files
    ]


class Docker:
    """What docker and compose say of the containers and images that there are."""

    def __init__(self, plan: Plan, file: Path) -> None:
        self.images: dict[str, dict[str, Any]] = {}
        self.containers: list[dict[str, Any]] = []
        self.hashes: dict[str, str] = {}
        self.alone: dict[str, str] = {}
        """What differs of the hashes where only the first file is read."""
        self.networks: dict[str, list[str]] = {}
        networks = render.networks_of(plan)
        for workload in plan.workloads:
            image = {"Id": f"sha256:{workload.image}", "Config": copy.deepcopy(IMAGE)}
            self.images |= {workload.image: image, f"sha256:{workload.image}": image}
            self.hashes[workload.host] = f"hash of {workload.host}"
            entrypoint = list(workload.foreign.entrypoint) if workload.foreign else []
            env = [*(f"{key}={value}" for key, value in workload.env.items()), "PALLAS_LISTEN_ON=any", "PATH=/bin"]
            labels = {"com.docker.compose.service": workload.host, "io.pallas-kit.kind": workload.kind}
            labels |= {"com.docker.compose.config-hash": self.hashes[workload.host], "com.docker.compose.project": "x"}
            labels |= {"com.docker.compose.project.config_files": str(file), "com.docker.compose.oneoff": "False"}
            for number in range(workload.replicas):
                self.containers.append(
                    {
                        "Name": f"/x-{workload.host}-{number + 1}",
                        "Image": f"sha256:{workload.image}",
                        "State": {"Status": "running"},
                        "Config": {
                            "Image": workload.image,
                            "Env": env,
                            "Entrypoint": entrypoint or ["python"],
                            "Cmd": list(workload.command),
                            "Labels": labels,
                            "User": "10001:10001",
                        },
                        "HostConfig": HOST_CONFIG
                        | {"PortBindings": published(workload), "Memory": MEMORY[workload.kind] << 20},
                        "Mounts": mounts(workload, plan, file.parent),
                        "NetworkSettings": {"Networks": {f"x_{name}": {} for name in networks[workload.host]}},
                    }
                )
        self.containers = copy.deepcopy(self.containers)

    def of(self, host: str) -> dict[str, Any]:
        """Return the first container of a service."""
        return next(entry for entry in self.containers if entry["Name"].startswith(f"/x-{host}-"))

    def run(self, command: Sequence[str]) -> Done | None:
        words = list(command)
        if words[:2] == ["docker", "ps"]:
            assert "label=com.docker.compose.project=x" in words
            return Done(0, "\n".join(entry["Name"] for entry in self.containers))
        if words[:2] == ["docker", "inspect"]:
            return Done(0, json.dumps([entry for entry in self.containers if entry["Name"] in words[2:]]))
        if words[:3] == ["docker", "image", "inspect"]:
            known = [self.images[word] for word in words[3:] if word in self.images]
            return Done(int(len(known) < len(words[3:])), json.dumps(known))
        assert words[:2] == ["docker", "compose"]
        if words[-3:] == ["config", "--format", "json"]:
            services = {host: {"networks": dict.fromkeys(names)} for host, names in self.networks.items()}
            names = {name: {"name": f"x_{name}"} for of_host in self.networks.values() for name in of_host}
            return Done(0, json.dumps({"services": services, "networks": names}))
        assert words[-3:] == ["config", "--hash", "*"]
        hashes = self.hashes if words.count("--file") > 1 else self.hashes | self.alone
        return Done(0, "".join(f"{host} {digest.replace(' ', '-')}\n" for host, digest in hashes.items()))


@pytest.fixture
def planned(plan: Callable[..., Plan]) -> Plan:
    return plan(FLEET)


@pytest.fixture
def docker(planned: Plan, tmp_path: Path) -> Docker:
    (tmp_path / "compose.yaml").write_text("")
    made = Docker(planned, tmp_path / "compose.yaml")
    for container in made.containers:
        labels = container["Config"]["Labels"]
        labels["com.docker.compose.config-hash"] = labels["com.docker.compose.config-hash"].replace(" ", "-")
    return made
