"""The way between two members that leads through a relay: a pod of its own, and another address for one name.

Nothing without a privilege ends the connections that a caller has open, and a Service leads all its callers to the same
pods. So the caller is rolled out with pods in which the callee's name leads to the relay, and back at the end.
"""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pallas_testing.project.fleet_file import FleetFile, slug
from pallas_testing.targets import relay
from pallas_testing.targets.base import CannotDisturb, FaultEnded, Undo, undone
from pallas_testing.targets.cluster.kubectl import Change, Kubectl
from pallas_testing.targets.relay import Course

_LAST_LINES = 5
"""Of the output of a relay that has ended."""
_STRAIGHT = Course(latency=0.0, jitter=0.0, cut_after=None)
_RESOURCES = {"cpu": "100m", "memory": "64Mi"}
_TAKEN_OVER = ("securityContext", "imagePullSecrets", "nodeSelector", "tolerations")
_TELL = """
import socket, time
for attempt in range(600):
    try:
        control = socket.socket(socket.AF_UNIX)
        control.connect({address!r})
        break
    except OSError:
        control.close()
        time.sleep(0.05)
control.sendall({line!r})
assert control.recv(4096), "the relay does not answer"
"""


@dataclass(slots=True)
class _Way:
    """A caller's way to a callee by a relay, with the courses that tests have put it on, the last one in force."""

    pod: str
    undo: ExitStack
    courses: list[Course] = field(default_factory=list)


class Relays:
    """The relays of one fleet."""

    def __init__(self, kubectl: Kubectl, file: FleetFile) -> None:
        self._kubectl = kubectl
        self._file = file
        self._ways: dict[tuple[str, str], _Way] = {}
        self._numbers = itertools.count(1)

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        """Lead what `caller` asks of `callee` through a relay.

        Raises:
            CannotDisturb: the caller is no agent that depends on the callee, or there is no relay to be had.
        """
        if callee not in self._file.calls.get(caller, ()):
            raise CannotDisturb(f"{fault}: {caller} is no agent with {callee} in its depends_on")
        edge = (caller, callee)
        try:
            way = self._ways.get(edge) or self._way(caller, callee)
            self._ways[edge] = way
            with undone(partial(self._back, edge)):
                self._tell(way.pod, course)
        except CannotDisturb as error:
            raise error.within(f"{fault}: no relay between {caller} and {callee}") from None
        way.courses.append(course)

        def undo() -> None:
            way.courses.pop()
            end = ""
            try:
                end = self._end(way.pod)
            finally:
                if not (end and way.courses):  # one that has ended can be told nothing
                    self._back(edge)
            if end:
                raise FaultEnded(f"{fault}: the relay between {caller} and {callee} {end}")

        return undo

    def _end(self, pod: str) -> str:
        """Return how a relay has ended by itself, with its last words; empty for one that still runs."""
        relay_pod = self._kubectl.find("pod", pod)
        if relay_pod is None:
            return "is gone"
        status = relay_pod["status"]
        if status["phase"] == "Running":
            return ""
        words = self._kubectl("logs", pod, f"--tail={_LAST_LINES}", "--ignore-errors").strip()
        return f"has ended ({status.get('reason') or status['phase']}): {words}"

    def _back(self, edge: tuple[str, str]) -> None:
        """Put the way on the course that is now the last one; without any it is no longer by the relay."""
        way = self._ways[edge]
        if way.courses:
            self._tell(way.pod, way.courses[-1])
        else:
            del self._ways[edge]
            way.undo.close()

    def _way(self, caller: str, callee: str) -> _Way:
        """Start a relay, which changes nothing yet: callers wait for callees that do not answer before they start."""
        name = f"pallas-testing-relay-{next(self._numbers)}"
        objects = self._objects(name, caller, callee)
        undo = ExitStack()
        names = [f"{entry['kind']}/{entry['metadata']['name']}" for entry in objects]
        undo.callback(self._kubectl, "delete", *names, "--ignore-not-found")
        with undone(undo.close):
            listing = {"apiVersion": "v1", "kind": "List", "items": objects}
            self._kubectl("create", "--filename=-", stdin=json.dumps(listing))
            self._kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=180s")
            self._tell(name, _STRAIGHT)
            undo.callback(self._kubectl.alter(caller, self._led(name, slug(callee))))
        return _Way(name, undo)

    def _led(self, pod: str, host: str) -> Change:
        """Return what makes a pod find the relay under the names of a Service."""
        address = self._kubectl("get", "pod", pod, "--output=jsonpath={.status.podIP}")
        names = [host, f"{host}.{self._kubectl.namespace}", f"{host}.{self._kubectl.namespace}.svc"]

        def lead(spec: dict[str, Any]) -> None:
            spec["hostAliases"] = [*spec.get("hostAliases", ()), {"ip": address, "hostnames": names}]

        return lead

    def _objects(self, name: str, caller: str, callee: str) -> list[dict[str, Any]]:
        """Return the relay's pod, and the policies that let its caller reach it where the chart's let nobody."""
        deployment = self._kubectl.deployment(caller)
        service = self._kubectl.find("service", slug(callee)) or {}
        port = service["spec"]["ports"][0]["port"]
        asking = deployment["spec"]["selector"]["matchLabels"]
        # the chart's policies let pods of a test into every member
        labels = {**asking, "app.kubernetes.io/name": name, "app.kubernetes.io/component": "test"}
        like = deployment["spec"]["template"]["spec"]
        objects = [_pod(name, labels, like, host=slug(callee), port=port)]
        if self._kubectl.find("networkpolicy", slug(callee)):
            ports = [{"port": port, "protocol": "TCP"}]
            let_in = {"ports": ports, "from": [{"podSelector": {"matchLabels": asking}}]}
            let_out = {"ports": ports, "to": [{"podSelector": {"matchLabels": labels}}]}
            objects += [
                _policy(name, labels, {"policyTypes": ["Ingress", "Egress"], "ingress": [let_in], "egress": [{}]}),
                _policy(f"{name}-caller", asking, {"policyTypes": ["Egress"], "egress": [let_out]}),
            ]
        return objects

    def _tell(self, pod: str, course: Course) -> None:
        line = f"{json.dumps(course)}\n".encode()
        self._kubectl.execute(pod, _TELL.format(address=relay.CONTROL, line=line))


def _pod(name: str, labels: dict[str, str], like: dict[str, Any], *, host: str, port: int) -> dict[str, Any]:
    """Return a relay with the image of its caller, which has a Python, and no right that the caller has not."""
    container = like["containers"][0]
    arguments = [Path(relay.__file__).read_text("utf-8"), json.dumps(_STRAIGHT), host, str(port)]
    spec = {key: like[key] for key in _TAKEN_OVER if key in like} | {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",  # one that started again would know nothing of its course, and lead straight on
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "relay",
                "image": container["image"],
                "imagePullPolicy": container.get("imagePullPolicy", "IfNotPresent"),
                "command": ["python", "-c"],
                "args": [argument.replace("$", "$$") for argument in arguments],
                "securityContext": container.get("securityContext", {}),
                "resources": {"limits": _RESOURCES, "requests": _RESOURCES},
            }
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _policy(name: str, selected: dict[str, str], rules: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": {"matchLabels": selected}, **rules},
    }
