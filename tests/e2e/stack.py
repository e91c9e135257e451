"""A fleet in containers: the generated compose file brought up by testcontainers, and what can be done to it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.models.containers import Container
from docker.types import EndpointConfig
from testcontainers.compose import DockerCompose

from pallas_contract import __version__, names

from . import leftovers


class Stack:
    """A running compose project; agents are called by their names in agents.yaml."""

    def __init__(self, compose: DockerCompose, config: Path, engine: docker.DockerClient) -> None:
        self.compose, self.config, self._engine = compose, config, engine
        self.first_look: dict[str, str] = {}
        """The registry's states when `up --wait` had returned."""
        self.project = re.search(r"^name: (\S+)$", config.read_text(), re.MULTILINE)[1]  # type: ignore[index]

    def container(self, member: str) -> Container:
        """The one container of a member, running or not."""
        (found,) = self.replicas(member)
        return found

    def replicas(self, member: str) -> list[Container]:
        """All containers of a member, running or not."""
        labels = [f"com.docker.compose.project={self.project}", f"com.docker.compose.service={names.slug(member)}"]
        return self._engine.containers.list(all=True, filters={"label": labels})

    def containers(self) -> dict[str, Container]:
        """Every container of the project by its service."""
        label = f"com.docker.compose.project={self.project}"
        found = self._engine.containers.list(all=True, filters={"label": label})
        return {item.labels["com.docker.compose.service"]: item for item in found}

    def url(self, member: str) -> str:
        """Where the host reaches an agent or the registry."""
        (binding,) = self.container(member).attrs["NetworkSettings"]["Ports"][f"{names.CONTAINER_PORT}/tcp"]
        return f"http://{binding['HostIp']}:{binding['HostPort']}"

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
        container = self._engine.containers.run(
            f"pallas-agent:{__version__}",
            ["-c", code],
            detach=True,
            labels={leftovers.LABEL: self.project},
            network=f"{self.project}_{network}",
            networking_config={f"{self.project}_{network}": EndpointConfig(DEFAULT_DOCKER_API_VERSION, aliases=[name])},
        )
        try:
            yield lambda: container.logs().decode().splitlines()
        finally:
            container.remove(force=True)

    def python(self, member: str, code: str) -> str:
        """What `code` prints when it runs inside the member's container."""
        done = self.container(member).exec_run(["python", "-c", code])
        return done.output.decode().strip()

    def generate(self) -> None:
        """`pallas-gen compose` anew."""
        generate(self.config)

    def up(self) -> None:
        """`docker compose up -d --wait --remove-orphans`, as a user does after a change."""
        command = ["docker", "compose", "up", "-d", "--wait", "--remove-orphans"]
        done = subprocess.run(command, check=False, cwd=self.config.parent, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"

    def kill(self, agent: str) -> None:
        self.container(agent).kill()

    def start(self, agent: str) -> None:
        self.container(agent).start()

    def freeze(self, agent: str) -> None:
        self.container(agent).pause()

    def thaw(self, agent: str) -> None:
        """Its healthcheck may have failed meanwhile: `up` would give the whole fleet up for it."""
        self.container(agent).unpause()
        end = time.monotonic() + 60
        while self.container(agent).health != "healthy":
            assert time.monotonic() < end, f"{agent} is {self.container(agent).health}"
            time.sleep(0.2)

    def logs(self) -> str:
        out, err = self.compose.get_logs()
        return out + err


def generate(config: Path) -> None:
    """Run `pallas-gen compose` in the project folder of `config`."""
    command = [Path(sys.executable).with_name("pallas-gen"), "compose"]
    done = subprocess.run(command, check=False, cwd=config.parent, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@contextmanager
def running(config: Path) -> Iterator[Stack]:
    """The project of `config` compiled and up; nothing of it is left afterwards."""
    generate(config)
    engine = docker.from_env()
    compose = DockerCompose(config.parent, compose_file_name="compose.yaml", pull=False, wait=True, keep_volumes=False)
    stack = Stack(compose, config, engine)
    with leftovers.owned(stack.project):
        try:
            compose.start()
            yield stack
        except subprocess.CalledProcessError as error:
            error.add_note(error.stderr.decode("utf-8", "replace") if error.stderr else "")
            error.add_note(stack.logs())
            raise
        finally:
            compose.stop(down=True)
            engine.close()
