"""The fleet in containers: what `pallas-gen compose` writes, brought up by testcontainers as a project of its own."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from functools import cached_property, partial
from ipaddress import IPv4Network, ip_network
from pathlib import Path

import docker
import yaml
from docker.errors import APIError, DockerException
from docker.models.containers import Container
from testcontainers.compose import DockerCompose
from testcontainers.core.docker_client import DockerClient

from pallas_testing.project import copies, fleet_file
from pallas_testing.project.fleet_file import slug
from pallas_testing.targets import commands, disk
from pallas_testing.targets.base import CannotDisturb, CannotStart, Order, Target, Undo, undone
from pallas_testing.targets.edges import Edges
from pallas_testing.targets.leash import Leash
from pallas_testing.targets.relay import Course

PORT = 8080
"""Every member of a fleet in containers listens there."""
_GRACE = "10"
"""Seconds until a container that is taken down is killed."""
_ATTEMPTS = 3
"""Compose gives the callers of a member up that fails three checks, as one may where the machine has much to do."""
_START_INTERVAL = (1, 44)
"""First version of Docker's API in which a check has an interval of its own at the start; Podman's is older."""
_ANYWHERE = ("", "0.0.0.0", "::")


class _Project(DockerCompose):
    """A compose project with a name other than that in its file, which names images too."""

    project = ""

    @cached_property
    def compose_command_property(self) -> list[str]:
        return [*DockerCompose(self.context).compose_command_property, "--project-name", self.project]


class Compose(Target):
    """A compose project with networks and ports of its own; the images are those of the user's fleet."""

    name = "compose"

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.project = f"pallas-testing-{secrets.token_hex(6)}"
        self._leash: Leash | None = None
        self._up: Leash | None = None
        self._attempts = 0
        self._addresses: dict[str, str] = {}

    def start(self) -> None:
        try:
            self._engine = DockerClient().client
            pool = self.claims.pool(self._networks())
        except DockerException as error:
            raise CannotStart(f"no Docker to start containers with: {error}") from None
        self.file = copies.copy(self.order.file, self.order.folder / "project", self.claims, pool)
        commands.generate(self.file, self.order, "compose")
        if _api(self._engine) < _START_INTERVAL:
            _drop_start_intervals(self.file.path.with_name("compose.yaml"))
        commands.generate(self.file, self.order, "build")
        self._compose = _Project(self.file.path.parent, wait=False)  # it is the registry that says when it is up
        self._compose.project = self.project
        self._leash = self._on_a_leash("down.log")
        self._go_up()

    def _go_up(self) -> None:
        """Begin `docker compose up`, which waits for members that others need; killed, it is undone by its own leash.

        The other leash may have taken the project down while this command was still making containers.
        """
        self._attempts += 1
        self._up = self._on_a_leash("up.log", *self._compose.compose_command_property, "up", "--detach")

    def _on_a_leash(self, output: str, *command: str) -> Leash:
        down = [*self._compose.compose_command_property, "down", "--volumes", "--remove-orphans", "--timeout", _GRACE]
        return Leash(
            {"run": command, "clean": [down], "grace": float(_GRACE)},
            cwd=self.file.path.parent,
            env=self.order.environ,
            output=self.order.folder / output,
        )

    def stop(self) -> None:
        if self._up:
            self._up.end(cleaned=True)
        if self._leash:
            self._leash.end()
            self._engine.close()
        self.claims.close()

    def url(self, member: str) -> str:
        """Return where this machine reaches a member.

        Raises:
            LookupError: agents.yaml does not publish it.
        """
        if member not in self._addresses:
            self._addresses[member] = self._address(member)
        return self._addresses[member]

    def _address(self, member: str) -> str:
        """Ask the engine: `docker compose ps`, asked again and again, takes a core from containers that start."""
        for container in self._containers(member):
            for published in container.attrs["NetworkSettings"]["Ports"].get(f"{PORT}/tcp") or ():
                host = published["HostIp"]
                return f"http://{'127.0.0.1' if host in _ANYWHERE else host}:{published['HostPort']}"
        raise LookupError(f"this machine does not reach {member}: no container of it publishes a port now")

    def logs(self, member: str) -> str:
        return "".join(container.logs().decode("utf-8", "replace") for container in self._containers(member))

    def artifacts(self) -> Mapping[str, str]:
        containers = [container for member in self.file.members for container in self._containers(member)]
        return {f"docker inspect {container.name}": json.dumps(container.attrs, indent=1) for container in containers}

    def ended(self) -> str:
        """Return why `docker compose up` has failed; on a machine that has much to do it is begun again."""
        if self._up is None or not self._up.code:
            return ""
        text = (self.order.folder / "up.log").read_text("utf-8", "replace")
        if "unhealthy" in text and self._attempts < _ATTEMPTS and not self._crashed():
            self._go_up()
            return ""
        tails = [f"--- {member}\n{self.logs(member)[-2000:]}" for member in self.file.members if self.logs(member)]
        return "\n".join(["`docker compose up` fails:", text[-2000:].rstrip(), *tails])

    def pending(self) -> str:
        return "`docker compose up` is under way" if self._up and self._up.code is None else ""

    def kill(self, agent: str) -> None:
        containers = self._existing(agent)
        with undone(partial(self.restore, agent)):
            for container in containers:
                container.kill()
                container.wait()  # or a start that follows would find it still running, and do nothing

    def restore(self, agent: str) -> None:
        for container in self._existing(agent):
            container.start()

    def answers(self, service: str) -> bool:
        """Return whether the check of each container has succeeded, where its image has one."""
        return all(container.health in ("healthy", "unknown") for container in self._existing(service))

    def pause(self, agent: str) -> None:
        containers = self._existing(agent)
        with undone(partial(self.resume, agent)):
            for container in containers:
                try:
                    container.pause()
                except APIError as error:  # without cgroups of its own it cannot: rootless, beside version 1 of them
                    raise self.cannot("pause", f"the engine refuses it: {error.explanation}") from None

    def resume(self, agent: str) -> None:
        for container in self._containers(agent):
            if container.status == "paused":
                container.unpause()

    def restart(self, agent: str) -> None:
        containers = self._existing(agent)
        with undone(partial(self.restore, agent)):
            for container in containers:
                container.restart(timeout=int(_GRACE))

    def remove(self, agent: str) -> None:
        containers = self._existing(agent)
        with undone(partial(self.recreate, agent)):
            for container in containers:
                container.remove(force=True)

    def recreate(self, agent: str) -> None:
        command = [*self._compose.compose_command_property, "up", "--detach", "--no-deps", slug(agent)]
        commands.run(command, self.file, self.order)

    def scale(self, agent: str, count: int) -> Undo:
        undo = partial(self._scale, agent, len(self._containers(agent)))
        with undone(undo):
            self._scale(agent, count)
        return undo

    def partition(self, one: str, other: str) -> Undo:
        return Edges(self._engine, self.project).partition(one, other)

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        return Edges(self._engine, self.project).lead(fault, caller, callee, course)

    def rotate_secret(self, name: str, content: str) -> Undo:
        file = self.file.path.parent / name
        if not file.is_file():
            raise LookupError(f"the project has no file {name}")
        undo = partial(self._rotate, file, file.read_text("utf-8"))
        with undone(undo):
            self._rotate(file, content)
        return undo

    def _rotate(self, file: Path, content: str) -> None:
        """Write the file where it is, as that is what is mounted, and start again those that have it; not the registry.

        It reads its secrets again by itself.
        """
        file.write_text(content, "utf-8")
        for member in self.file.members:
            if member == fleet_file.REGISTRY:
                continue
            for container in self._containers(member):  # Docker Desktop has a prefix of its own before the path
                if any(str(mount.get("Source", "")).endswith(str(file)) for mount in container.attrs["Mounts"]):
                    container.restart(timeout=int(_GRACE))

    def fill_disk(self, agent: str) -> Undo:
        undo = partial(self.execute, agent, disk.FREE)
        with undone(undo):
            self.execute(agent, disk.FILL)
        return undo

    def execute(self, member: str, code: str) -> str:
        result = self._existing(member)[0].exec_run(["python", "-c", code])
        text: str = result.output.decode("utf-8", "replace")
        if result.exit_code:
            raise CannotDisturb(f"in {member}: {text[-500:]}")
        return text

    def _scale(self, agent: str, count: int) -> None:
        service = slug(agent)
        up = ("up", "--detach", "--no-deps", "--no-recreate", "--scale", f"{service}={count}", service)
        command = [*self._compose.compose_command_property, *up]
        commands.run(command, self.file, self.order, failure=CannotDisturb)

    def _networks(self) -> list[IPv4Network]:
        """Return the address ranges of all networks of the engine."""
        configs = [network.attrs.get("IPAM", {}).get("Config") or [] for network in self._engine.networks.list()]
        subnets = [ip_network(config["Subnet"]) for entries in configs for config in entries if config.get("Subnet")]
        return [subnet for subnet in subnets if isinstance(subnet, IPv4Network)]

    def _containers(self, member: str) -> list[Container]:
        """Return all containers of a member, running or not."""
        labels = [f"com.docker.compose.project={self.project}", f"com.docker.compose.service={slug(member)}"]
        containers: list[Container] = self._engine.containers.list(
            all=True, ignore_removed=True, filters={"label": labels}
        )
        return containers

    def _existing(self, member: str) -> list[Container]:
        """Return the containers of a member.

        Raises:
            LookupError: it has none.
        """
        containers = self._containers(member)
        if not containers:
            raise LookupError(f"{member} has no container now")
        return containers

    def _crashed(self) -> bool:
        """Return whether a member has ended by itself, which no machine is too busy for."""
        containers = [container for member in self.file.members for container in self._containers(member)]
        return any(container.attrs.get("RestartCount") for container in containers)


def _api(engine: docker.DockerClient) -> tuple[int, ...]:
    """Return the version of the API that an engine speaks."""
    return tuple(map(int, engine.version()["ApiVersion"].split(".")))


def _drop_start_intervals(path: Path) -> None:
    """Write a compose file anew whose checks have one interval, also at the start, which takes longer so."""
    project = yaml.safe_load(path.read_text("utf-8"))
    for service in project["services"].values():
        service.get("healthcheck", {}).pop("start_interval", None)
    path.write_text(yaml.safe_dump(project), "utf-8")
