"""`kubectl` in the namespace of one fleet: its pods, and how those of a Deployment are made otherwise for a while."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from pallas_testing.project.fleet_file import FleetFile, slug
from pallas_testing.targets import commands
from pallas_testing.targets.base import CannotDisturb, Order, Undo, undone

Change = Callable[[dict[str, Any]], None]
"""What is made of the spec of a pod (Kubernetes API, PodSpec)."""
_PODS = "/spec/template/spec"
_STARTED = "{.status.containerStatuses[0].started}"
"""Whether the startup probe of a pod was answered."""
_WATCHED = "--timeout=5s"
"""How long pods that start are waited for at a time."""


class Kubectl:
    """The commands. Each method raises CannotDisturb where one fails, with what it says."""

    def __init__(self, file: FleetFile, order: Order, namespace: str) -> None:
        self._file = file
        self._order = order
        self.namespace = namespace

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what `kubectl` prints."""
        command = self.command(*arguments)
        return commands.run(command, self._file, self._order, stdin=stdin, failure=CannotDisturb)

    def command(self, *arguments: str) -> list[str]:
        """Return the words of a command in the namespace."""
        return ["kubectl", "--namespace", self.namespace, *arguments]

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return an object of the API, None where there is none."""
        text = self("get", kind, name, "--output=json", "--ignore-not-found")
        return json.loads(text) if text else None

    def deployment(self, member: str) -> dict[str, Any]:
        """Return the Deployment of a member."""
        deployment: dict[str, Any] = json.loads(self("get", "deployment", slug(member), "--output=json"))
        return deployment

    def pods(self, member: str) -> list[str]:
        """Return the names of a member's pods that run and are not on their way out, those that are ready first."""
        return _running(self._pods(member))

    def pods_at_last(self, member: str) -> list[str]:
        """Return the same; where pods are about to start, when they have or some seconds have passed.

        Until then nobody listens there. A watch is one command, where to try again and again takes several each time.
        """
        pods = self._pods(member)
        if pods and not any(map(_started, pods)):
            with suppress(CannotDisturb):  # they take longer
                self("wait", f"--for=jsonpath={_STARTED}=true", "pod", selector(member), _WATCHED)
            pods = self._pods(member)
        return _running(pods)

    def execute(self, pod: str, code: str) -> str:
        """Return what Python prints that runs in the first container of a pod."""
        return self("exec", pod, "--", "python", "-c", code)

    def settle(self, member: str) -> None:
        """Wait until a member's pods are those that its Deployment describes, and the ones of before are gone."""
        self("rollout", "status", f"deployment/{slug(member)}", f"--timeout={commands.TIMEOUT:g}s")
        if leaving := [f"pod/{pod['metadata']['name']}" for pod in self._pods(member) if _leaving(pod)]:
            self("wait", "--for=delete", *leaving, "--timeout=180s")

    def alter(self, member: str, change: Change) -> Undo:
        """Roll a member out with other pods, in which nothing of the old ones is kept but what a volume keeps."""
        before = self.deployment(member)["spec"]["template"]["spec"]
        after = copy.deepcopy(before)
        change(after)

        def undo() -> None:
            self._replace_pods(member, before)

        with undone(undo):
            self._replace_pods(member, after)
        return undo

    def _replace_pods(self, member: str, spec: Mapping[str, Any]) -> None:
        patch = [{"op": "replace", "path": _PODS, "value": spec}]
        self("patch", "deployment", slug(member), "--type=json", f"--patch={json.dumps(patch)}")
        self.settle(member)

    def _pods(self, member: str) -> list[dict[str, Any]]:
        pods: list[dict[str, Any]] = json.loads(self("get", "pods", selector(member), "--output=json"))["items"]
        return pods


def selector(member: str) -> str:
    """Return the option by which `kubectl` finds the pods of a member."""
    return f"--selector=app.kubernetes.io/name={slug(member)}"


def _running(pods: Iterable[Mapping[str, Any]]) -> list[str]:
    running = [pod for pod in pods if pod["status"].get("phase") == "Running" and not _leaving(pod)]
    return [pod["metadata"]["name"] for pod in sorted(running, key=_ready, reverse=True)]


def _leaving(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _started(pod: Mapping[str, Any]) -> bool:
    return any(status.get("started") for status in pod["status"].get("containerStatuses", [])[:1])


def _ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((entry["type"], entry["status"]) == ("Ready", "True") for entry in conditions)
