"""The fleet in Kubernetes: the generated chart, installed by Helm into a namespace of its own."""

from __future__ import annotations

import secrets
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pallas_testing.project import copies
from pallas_testing.project.fleet_file import REGISTRY, slug
from pallas_testing.targets import commands, disk
from pallas_testing.targets.base import CannotDisturb, CannotStart, Order, Target, Undo, undone
from pallas_testing.targets.cluster import policies, stopper
from pallas_testing.targets.cluster.forwards import PORT, Forwards
from pallas_testing.targets.cluster.kubectl import Kubectl, selector
from pallas_testing.targets.cluster.relays import Relays
from pallas_testing.targets.leash import Leash
from pallas_testing.targets.relay import Course

ENV_LOAD = "PALLAS_LOAD_IMAGES"
"""A command that brings the images named behind it from Docker to the nodes."""
_NODES = ("kind", "minikube", "k3d")
"""Clusters that `pallas-gen build --load` knows, by the beginning of their context's name."""
_INSTALL = ("helm", "upgrade", "--install")
_KNOWN = "--disable-openapi-validation"
"""For a manifest that was installed before: to read the API's description again takes half of what Helm does."""
_SHOWN = "deployments,replicasets,pods,services,configmaps,networkpolicies,events"
"""What may be shown to somebody who knows no secret."""
_SMALL = "4Mi"
"""Of a `/tmp` that is filled: it counts as memory of its container."""

_REACH = """
import socket
for host, port in {addresses!r}:
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError as error:
        print(f"{{host}}: {{error}}")
"""


class Cluster(Target):
    """A release in the cluster of KUBECONFIG, reached by `kubectl port-forward`."""

    name = "cluster"

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.namespace = f"pallas-testing-{secrets.token_hex(6)}"
        self._leash: Leash | None = None
        self._forwards: Forwards | None = None
        self._stopped: dict[str, list[subprocess.Popen[str]]] = {}
        self._undo_removal: dict[str, Undo] = {}

    def start(self) -> None:
        self.file = copies.copy(self.order.file, self.order.folder / "project", self.claims)
        self._run("kubectl", "get", "--raw", "/readyz")
        advice = commands.generate(self.file, self.order, "helm")
        self._install = install_command(advice, self.namespace)
        self._load(*self._install[len(_INSTALL) :])
        self._kubectl = Kubectl(self.file, self.order, self.namespace)
        self._relays = Relays(self._kubectl, self.file)
        ports = dict(zip(self.file.members, self.claims.ports(len(self.file.members)), strict=True))
        self._forwards = Forwards(self._kubectl, self.file, self.order, ports)
        delete = ["kubectl", "delete", "namespace", self.namespace, "--ignore-not-found", "--timeout=180s"]
        self._leash = Leash(
            {"run": [], "clean": [delete], "grace": 5.0},
            cwd=self.file.path.parent,
            env=self.order.environ,
            output=self.order.folder / "down.log",
        )
        self._run("kubectl", "create", "namespace", self.namespace)
        self._run(*self._install)

    def stop(self) -> None:
        for agent in list(self._stopped):
            self.resume(agent)
        if self._forwards:
            self._forwards.close()
        if self._leash:
            self._leash.end()
        self.claims.close()

    def url(self, member: str) -> str:
        """Return where this machine reaches a member.

        Raises:
            ConnectionError: it has no pod that runs.
        """
        if self._forwards is None:
            raise ConnectionError("the fleet has not been started")
        return self._forwards.url(member)

    def logs(self, member: str) -> str:
        with suppress(CannotDisturb):  # no pod has a log yet
            return self._kubectl("logs", "--tail=-1", "--all-containers", "--ignore-errors", selector(member))
        return ""

    def ended(self) -> str:
        return ""

    def artifacts(self) -> Mapping[str, str]:
        return {"manifests in the namespace": self._kubectl("get", _SHOWN, "--output=yaml")}

    def unreached(self, caller: str, members: Sequence[str]) -> str:
        """Ask from within: a Service leads to a pod only once it is ready, seconds after the registry has found it."""
        addresses = [(slug(member), self.file.inside.get(member, PORT)) for member in members]
        return self.execute(caller, _REACH.format(addresses=addresses)).strip()

    def kill(self, agent: str) -> None:
        with undone(partial(self.restore, agent)):
            self._kubectl("delete", "pod", selector(agent), "--force", "--grace-period=0")
        self._forget(agent)

    def restore(self, agent: str) -> None:
        self._kubectl.settle(agent)
        self._forget(agent)

    def pause(self, agent: str) -> None:
        """Stop all processes of all pods; where the node's kernel lets nobody do that, after a roll-out.

        In the new pods the containers share the processes' namespace, in which the agent is not the first process.
        """
        try:
            self._stop_processes(agent)
        except CannotDisturb as error:
            if stopper.REFUSED not in str(error):
                raise
            self._kubectl.alter(agent, _share_processes)
            self._forget(agent)
            self._stop_processes(agent, stopper.SHARED)

    def resume(self, agent: str) -> None:
        for process in self._stopped.pop(agent, []):
            process.communicate()

    def restart(self, agent: str) -> None:
        self._kubectl("rollout", "restart", f"deployment/{slug(agent)}")

    def remove(self, agent: str) -> None:
        """Take all pods away; the name of the Service stays, and leads nowhere."""
        if agent in self._undo_removal:
            raise CannotDisturb(f"remove: {agent} is removed already, and comes back when the test ends")
        undo = self.scale(agent, 0)
        with undone(undo):
            self._kubectl("wait", "--for=delete", "pod", selector(agent), "--timeout=120s")
        self._undo_removal[agent] = undo
        self._forget(agent)

    def recreate(self, agent: str) -> None:
        self._undo_removal.pop(agent)()

    def scale(self, agent: str, count: int) -> Undo:
        deployment = f"deployment/{slug(agent)}"
        before = self._kubectl("get", deployment, "--output=jsonpath={.spec.replicas}")

        def undo() -> None:
            self._kubectl("scale", deployment, f"--replicas={before}")
            self.restore(agent)

        with undone(undo):
            self._kubectl("scale", deployment, f"--replicas={count}")
        return undo

    def partition(self, one: str, other: str) -> Undo:
        undo = policies.partition(self._kubectl, one, other)
        if undo is None:
            raise self.cannot("partition", f"no NetworkPolicy lets {one} and {other} reach each other")
        return undo

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        return self._with_new_pods(self._relays.lead(fault, caller, callee, course), caller)

    def rotate_secret(self, name: str, content: str) -> Undo:
        file = self.file.path.parent / name
        if not any(option.endswith(f".content={name}") for option in self._install):
            raise LookupError(f"the chart takes no secret from {name}")
        undo = partial(self._rotate, file, file.read_text("utf-8"))
        with undone(undo):
            self._rotate(file, content)
        return undo

    def _rotate(self, file: Path, content: str) -> None:
        file.write_text(content, "utf-8")
        commands.run([*self._install, "--wait", _KNOWN], self.file, self.order, failure=CannotDisturb)
        for member in self.file.members:
            if member != REGISTRY:
                self.restore(member)

    def fill_disk(self, agent: str) -> Undo:
        """Fill a `/tmp` in memory, with which the agent is rolled out: for a full disk its node would evict the pod."""
        undo = self._with_new_pods(self._kubectl.alter(agent, _keep_tmp_in_memory), agent)
        with undone(undo):
            for pod in self._kubectl.pods(agent):
                self._kubectl.execute(pod, disk.FILL)
        return undo

    def execute(self, member: str, code: str) -> str:
        pods = self._kubectl.pods(member)
        if not pods:
            raise CannotDisturb(f"{member} has no pod that runs")
        return self._kubectl.execute(pods[0], code)

    def _stop_processes(self, agent: str, *arguments: str) -> None:
        """Hold the agent's processes by one of this machine for each pod: when it has ended, they run on."""
        code = Path(stopper.__file__).read_text("utf-8")
        for pod in self._kubectl.pods(agent):
            process = subprocess.Popen(  # noqa: S603 - kubectl
                self._kubectl.command("exec", "--quiet", "--stdin", pod, "--", "python", "-c", code, *arguments),
                cwd=self.file.path.parent,
                env=self.order.environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            line = process.stdout.readline() if process.stdout else ""
            if line.strip() != stopper.STOPPED:
                rest, _ = process.communicate()
                self.resume(agent)
                raise CannotDisturb(f"pause: {agent} does not stop: {line}{rest}")
            self._stopped.setdefault(agent, []).append(process)

    def _with_new_pods(self, undo: Undo, member: str) -> Undo:
        """Return what also forgets the way to the pods that are gone, as after a fault that has replaced them."""
        self._forget(member)

        def undo_and_forget() -> None:
            try:
                undo()
            finally:
                self._forget(member)

        return undo_and_forget

    def _run(self, *command: str) -> str:
        return commands.run(command, self.file, self.order)

    def _load(self, *chart: str) -> None:
        """Build what is not here and bring it to the nodes, where somebody says how; else they have it, or pull it."""
        context = self._run("kubectl", "config", "current-context").strip()
        nodes = next((name for name in _NODES if context.startswith(name)), None)
        if nodes:
            commands.generate(self.file, self.order, "build", "--load", nodes)
        elif load := self.order.environ.get(ENV_LOAD):
            commands.generate(self.file, self.order, "build")
            manifest = self._run("helm", "template", *chart)
            self._run(*shlex.split(load), *images(manifest))

    def _forget(self, member: str) -> None:
        if self._forwards:
            self._forwards.forget(member)


def _share_processes(spec: dict[str, Any]) -> None:
    spec["shareProcessNamespace"] = True


def _keep_tmp_in_memory(spec: dict[str, Any]) -> None:
    for volume in spec["volumes"]:
        if volume["name"] == "tmp":
            volume["emptyDir"] = {"medium": "Memory", "sizeLimit": _SMALL}


def install_command(advice: str, namespace: str) -> list[str]:
    """Return the command that `pallas-gen helm` prints last, for a namespace that is there.

    Raises:
        CannotStart: it prints none.
    """
    _, start, rest = advice.partition(f"{' '.join(_INSTALL)} ")
    words = shlex.split(f"{start}{rest}".replace("\\\n", " ").partition("\n")[0])
    if "--namespace" not in words:
        raise CannotStart(f"`pallas-gen helm` does not say how to install the chart:\n{advice}")
    words[words.index("--namespace") + 1] = namespace
    return [word for word in words if word != "--create-namespace"]


def images(manifest: str) -> list[str]:
    """Return the images in Kubernetes objects, sorted."""
    return sorted(set(_images(list(yaml.safe_load_all(manifest)))))


def _images(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for entry in value:
            yield from _images(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in ("containers", "initContainers"):
                yield from (container["image"] for container in entry)
            else:
                yield from _images(entry)
