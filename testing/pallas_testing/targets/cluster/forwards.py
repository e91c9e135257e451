"""The ways from this machine to the members of a fleet in Kubernetes: `kubectl port-forward`, one for each member."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from pallas_testing.project.fleet_file import FleetFile, slug
from pallas_testing.targets.base import CannotDisturb, Order
from pallas_testing.targets.cluster.kubectl import Kubectl
from pallas_testing.targets.leash import Leash

PORT = 8080
"""Every member of a fleet in containers listens there, but for services of an image with a port of its own."""
_PATIENCE = 60.0
"""Seconds until a forward to a member stands."""
_POLL = 0.1


class Forwards:
    """The forwards of one fleet, to `ports` of this machine by member; each ends with the test's process."""

    def __init__(self, kubectl: Kubectl, file: FleetFile, order: Order, ports: dict[str, int]) -> None:
        self._kubectl = kubectl
        self._file = file
        self._order = order
        self._ports = ports
        self._leashes: dict[str, Leash] = {}

    def url(self, member: str) -> str:
        """Return where this machine reaches a member, by a forward to one of its pods, made anew when that is gone.

        Raises:
            ConnectionError: it has no pod that runs.
        """
        forward = self._leashes.get(member)
        if forward is not None and forward.code is not None:
            self.forget(member)
            forward = None
        if forward is None:
            self._leashes[member] = forward = self._start(member)
        self._until_there(forward, member)
        return f"http://127.0.0.1:{self._ports[member]}"

    def forget(self, *members: str) -> None:
        """End the forwards to members whose pods are gone: they would notice with the next request only."""
        for member in members:
            if forward := self._leashes.pop(member, None):
                forward.end()

    def close(self) -> None:
        """End all forwards."""
        self.forget(*list(self._leashes))

    def _start(self, member: str) -> Leash:
        """Start a forward to a pod by its name: by that of a Service it may lead to one that is on its way out."""
        try:
            pods = self._kubectl.pods_at_last(member)
        except CannotDisturb as error:
            raise ConnectionError(f"no way to {member} now: {error}") from None
        if not pods:
            raise ConnectionError(f"no way to {member} now: it has no pod that runs")
        output = self._order.folder / f"forward-{slug(member)}.log"
        output.write_text("")
        command = self._kubectl.command("port-forward", f"pod/{pods[0]}", f"{self._ports[member]}:{PORT}")
        order = self._order
        return Leash(
            {"run": command, "clean": [], "grace": 5.0}, cwd=self._file.path.parent, env=order.environ, output=output
        )

    def _until_there(self, forward: Leash, member: str) -> None:
        end = time.monotonic() + _PATIENCE
        while forward.code is None and time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._ports[member]), timeout=1):
                return
            time.sleep(_POLL)
        self.forget(member)
        text = (self._order.folder / f"forward-{slug(member)}.log").read_text("utf-8", "replace")
        raise ConnectionError(f"no way to {member} now: {text[-500:]}")
