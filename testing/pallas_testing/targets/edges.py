"""The network between two members of a compose project: taken away, or led through a relay.

In an isolated fleet each edge of `depends_on` has a network of its own with nobody else on it. No privilege of the
machine is needed, so it works alike with a rootless engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from pallas_testing.project.fleet_file import REGISTRY, slug
from pallas_testing.targets import relay, resets
from pallas_testing.targets.base import CannotDisturb, FaultEnded, Undo, undone
from pallas_testing.targets.relay import Course

PORT = 8080
_READY = b"ready"
_LAST_WORDS = 500
"""Characters of the output of a relay that has ended."""


class Edges:
    """The networks of one project."""

    def __init__(self, engine: DockerClient, project: str) -> None:
        self._engine = engine
        self._project = project

    def partition(self, one: str, other: str) -> Undo:
        """Take each away from the networks on which it calls the other."""
        networks = [(network, caller) for caller, network in self._between(one, other)]
        if not networks:
            raise CannotDisturb(
                f"partition: {one} and {other} have no network of their own: neither depends on the other, "
                "or networks.mode in agents.yaml is `shared`"
            )
        pairs = [(network, container) for network, caller in networks for container in self._containers(caller)]
        attachments: list[tuple[Network, Container, dict[str, Any]]] = []

        def undo() -> None:
            for attachment in attachments:
                _attach(*attachment)

        with undone(undo):
            for network, container in pairs:
                attachments.append((network, *self._detach(network, container)))
        return undo

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        """Lead what `caller` asks of `callee` through a relay, and end the connections that there are."""
        network = self._network(caller, callee)
        if network is None:
            raise CannotDisturb(
                f"{fault}: {caller} does not call {callee} on a network of their own: agents.yaml has no such "
                "depends_on, or its networks.mode is `shared`"
            )
        asking = self._only(fault, caller)
        asked = self._only(fault, callee)
        address = asked.attrs["NetworkSettings"]["Networks"][network.name]["IPAddress"]
        port = _port(asking, callee)
        container, options = self._detach(network, asked)
        names = [name for name in options["aliases"] if name != slug(callee)]
        with undone(partial(_attach, network, container, options)):
            _attach(network, container, {**options, "aliases": names})
        between: Container | None = None

        def lead_back() -> None:
            if between is not None:
                between.remove(force=True)
            self._detach(network, container)
            _attach(network, container, options)

        def undo() -> None:
            try:
                if between is not None and (end := _end(between)):
                    raise FaultEnded(f"{fault}: the relay between {caller} and {callee} {end}")
            finally:
                lead_back()

        with undone(lead_back):
            try:
                between = self._relay(asking, network, slug(callee), [json.dumps(course), address, str(port)])
                _end_connections(asking, address)
            except (DockerException, CannotDisturb) as error:
                raise CannotDisturb(f"{fault}: no relay between {caller} and {callee}: {error}") from None
        return undo

    def _between(self, one: str, other: str) -> list[tuple[str, Network]]:
        pairs = [(one, other), (other, one)]
        return [(caller, network) for caller, callee in pairs if (network := self._network(caller, callee))]

    def _network(self, caller: str, callee: str) -> Network | None:
        """Return the network on which `caller` and nobody else calls `callee`."""
        names = [f"{self._project}_call.{slug(caller)}.{slug(callee)}"]
        if caller == REGISTRY:
            names.append(f"{self._project}_agent.{slug(callee)}")
        networks = self._engine.networks.list(filters={"label": f"com.docker.compose.project={self._project}"})
        return next((network for network in networks if network.name in names), None)

    def _containers(self, member: str) -> list[Container]:
        labels = [f"com.docker.compose.project={self._project}", f"com.docker.compose.service={slug(member)}"]
        containers: list[Container] = self._engine.containers.list(ignore_removed=True, filters={"label": labels})
        if not containers:
            raise LookupError(f"{member} has no container that runs")
        return containers

    def _only(self, fault: str, member: str) -> Container:
        """Return the container of a member that has one.

        Raises:
            CannotDisturb: it has replicas, and a relay would lead only one of them.
        """
        containers = self._containers(member)
        if len(containers) > 1:
            raise CannotDisturb(
                f"{fault}: {member} runs as {len(containers)} replicas, and a relay stands between two containers: "
                f"scale {member} to 1"
            )
        return containers[0]

    def _detach(self, network: Network, container: Container) -> tuple[Container, dict[str, Any]]:
        """Take a container from a network; return what brings it back to where it was."""
        container.reload()
        endpoint = container.attrs["NetworkSettings"]["Networks"][network.name]
        network.disconnect(container)
        return container, {"aliases": endpoint["Aliases"] or [], "ipv4_address": endpoint["IPAddress"]}

    def _relay(self, asking: Container, network: Network, name: str, arguments: Sequence[str]) -> Container:
        """Return a container with the caller's image, which has a Python, that runs on the network as `name`."""
        config = self._engine.api.create_networking_config(
            {network.name: self._engine.api.create_endpoint_config(aliases=[name])}
        )
        labels = {
            "com.docker.compose.project": self._project,
            "com.docker.compose.service": "pallas-testing-relay",
            "com.docker.compose.oneoff": "False",
        }
        host = self._engine.api.create_host_config(network_mode=network.name, cap_drop=["ALL"], init=True)
        made = self._engine.api.create_container(
            asking.attrs["Image"],
            ["-c", Path(relay.__file__).read_text("utf-8"), *arguments],
            entrypoint=["python"],
            labels=labels,
            healthcheck={"test": ["NONE"]},  # that of the image asks for an agent, once a second
            host_config=host,
            networking_config=config,
        )
        container = self._engine.containers.get(made["Id"])
        with undone(partial(container.remove, force=True)):
            container.start()
            for line in container.logs(stream=True, follow=True):
                if _READY in line:
                    return container
            raise CannotDisturb(container.logs().decode("utf-8", "replace")[-_LAST_WORDS:])


def _attach(network: Network, container: Container, options: dict[str, Any]) -> None:
    try:
        network.connect(container, **options)
    except APIError as error:
        if error.status_code not in (403, 404, 409):  # gone meanwhile, or there already
            raise


def _end(relay: Container) -> str:
    """Return how a relay has ended by itself, with its last words; empty for one that still runs."""
    try:
        relay.reload()
        if relay.status == "running":
            return ""
        words = relay.logs().decode("utf-8", "replace").strip()[-_LAST_WORDS:]
        return f"has ended with {relay.attrs['State']['ExitCode']}: {words}"
    except NotFound:
        return "is gone"


def _end_connections(container: Container, address: str) -> None:
    code = Path(resets.__file__).read_text("utf-8")
    result = container.exec_run(["python", "-c", code, address], privileged=True, user="0")
    if result.exit_code:
        text = result.output.decode("utf-8", "replace").strip()
        raise CannotDisturb(f"the connections that are open cannot be ended: {text[-300:]}")


def _port(asking: Container, callee: str) -> int:
    """Return the port at which a caller has been told to ask."""
    address = re.compile(rf"//{re.escape(slug(callee))}:(\d+)")
    ports = [int(match[1]) for entry in asking.attrs["Config"]["Env"] or () if (match := address.search(entry))]
    return ports[0] if ports else PORT
