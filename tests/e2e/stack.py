"""A fleet in containers, brought up by the plugin's fixture, and what only containers have."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import docker
import yaml
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.models.containers import Container
from docker.types import EndpointConfig

from pallas_contract import __version__, names
from pallas_testing.fleet import start
from pallas_testing.fleet.start import Running
from pallas_testing.targets.base import Order
from pallas_testing.targets.compose import Compose

from . import leftovers

PALLAS_GEN = Path(sys.executable).with_name("pallas-gen")
RARE = {"healthcheck": {"interval": "60s", "start_period": "300s"}}
"""Each check is a program in a container and costs 0.1 s of CPU."""

CONNECT = """
import socket
for host in {hosts}:
    try:
        socket.create_connection((host, 8080), timeout=5).close()
        print("connected")
    except OSError:
        print("refused")
"""
"""`refused`: there is no such name, or no way there."""

PATIENCE = 540.0
"""Seconds until a fleet is up, on a machine that has much else to do: a test here may take ten minutes."""

_engine = cache(docker.from_env)


class Stack:
    """A running compose project; agents are called by their names in agents.yaml."""

    def __init__(self, running: Running) -> None:
        assert isinstance(running.target, Compose)
        self.target = running.target
        self.config, self.project = self.target.file.path, self.target.project
        self.url, self.kill, self.start = self.target.url, self.target.kill, self.target.restore
        self.freeze, self.thaw = self.target.pause, self.target.resume

    def container(self, member: str) -> Container:
        """The one container of a member, running or not."""
        (found,) = self.replicas(member)
        return found

    def replicas(self, member: str) -> list[Container]:
        """All containers of a member, running or not."""
        labels = [f"com.docker.compose.project={self.project}", f"com.docker.compose.service={names.slug(member)}"]
        return _engine().containers.list(all=True, ignore_removed=True, filters={"label": labels})

    def containers(self) -> dict[str, Container]:
        """Every container of the project by its service."""
        label = f"com.docker.compose.project={self.project}"
        found = _engine().containers.list(all=True, ignore_removed=True, filters={"label": label})
        return {item.labels["com.docker.compose.service"]: item for item in found}

    def addresses(self, member: str) -> set[str]:
        """The member's address in each of its networks."""
        networks: dict[str, Any] = self.container(member).attrs["NetworkSettings"]["Networks"]
        return {network["IPAddress"] for network in networks.values()}

    def seen_by_registry(self, member: str) -> set[str]:
        """The address of each replica of a member on the network that the registry probes it on."""
        shared = self.container("registry").attrs["NetworkSettings"]["Networks"].keys()
        replicas = [replica.attrs["NetworkSettings"]["Networks"] for replica in self.replicas(member)]
        return {networks[name]["IPAddress"] for networks in replicas for name in networks.keys() & shared}

    def network(self, name: str) -> dict[str, str]:
        """Host name -> address on one network of the project."""
        found = {}
        for service, container in self.containers().items():
            attached = container.attrs["NetworkSettings"]["Networks"].get(f"{self.project}_{name}")
            if attached:
                found[service] = attached["IPAddress"]
        return found

    @contextmanager
    def beside(self, network: str, name: str, code: str) -> Iterator[Callable[[], list[str]]]:
        """A container that is no member of the fleet, on one of its networks, running `code`; the lines it printed."""
        container = _engine().containers.run(
            f"pallas-agent:{__version__}",
            ["-c", code],
            detach=True,
            labels={leftovers.LABEL: self.project},
            healthcheck={"test": ["NONE"]},  # that of the image asks for an agent
            network=f"{self.project}_{network}",
            networking_config={f"{self.project}_{network}": EndpointConfig(DEFAULT_DOCKER_API_VERSION, aliases=[name])},
        )
        try:
            yield lambda: container.logs().decode().splitlines()
        finally:
            container.remove(force=True)

    def python(self, member: str, code: str) -> str:
        """What `code` prints when it runs inside the member's container."""
        command = ["docker", "exec", str(self.container(member).id), "python", "-c", code]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr  # the SDK's own way was seen to lose what was printed, under load
        return done.stdout.strip()

    def connections(self, caller: str, *hosts: str) -> list[str]:
        """What becomes of connections from a member's container to other hosts, in their order."""
        return self.python(caller, CONNECT.format(hosts=hosts)).split()

    def generate(self, pallas_gen: Sequence[str | Path] = (PALLAS_GEN,)) -> None:
        """`pallas-gen compose` anew."""
        done = subprocess.run(
            [*pallas_gen, "compose"], check=False, cwd=self.config.parent, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr

    def up(self) -> None:
        """`docker compose up -d --wait --remove-orphans`, as a user does after a change.

        It gives the whole fleet up for one whose check has failed, as that of a container does which was paused.
        """
        end = time.monotonic() + 120
        while unwell := [name for name, container in self.containers().items() if container.health == "unhealthy"]:
            assert time.monotonic() < end, f"unhealthy: {unwell}"
            time.sleep(0.5)
        command = ["docker", "compose", "--project-name", self.project, "up", "-d", "--wait", "--remove-orphans"]
        done = subprocess.run(command, check=False, cwd=self.config.parent, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"

    def logs(self) -> str:
        return "".join(map(self.target.logs, self.target.file.members))


@contextmanager
def running(config: Path, expected: Mapping[str, str] | None = None, *, runtime: str = "") -> Iterator[Running]:
    """Yield the fleet of an agents.yaml in containers, up; nothing of it is left afterwards.

    `expected` has the states other than `ok` that agents come up in; `runtime` runs containers, by default Docker's.
    """
    entries = yaml.safe_load(config.read_text())
    own = {name: entries[name] for name in ("gateway",) if name in entries}
    members = {**entries["agents"], **entries.get("services", {}), **own, "registry": {}}
    keys = {**RARE, "runtime": runtime} if runtime else RARE
    services = {names.slug(name): keys for name, entry in members.items() if "image" not in entry}  # may have no check
    config.with_name("compose.override.yaml").write_text(yaml.safe_dump({"services": services}))
    folder = config.parent.with_name(f"{config.parent.name}.running")
    folder.mkdir()
    with start.running("compose", Order(config, folder), expected or {}, patience=PATIENCE) as fleet:
        assert isinstance(fleet.target, Compose)
        with leftovers.owned(fleet.target.project):  # of containers beside the fleet
            yield fleet
