"""The fleet in Kubernetes: the generated chart, installed by Helm into a namespace of its own."""

from __future__ import annotations

import json
import secrets
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pallas_testing.project import copies
from pallas_testing.project.fleet_file import REGISTRY, slug
from pallas_testing.targets import commands
from pallas_testing.targets.base import CannotDisturb, CannotStart, Order, Target, Undo
from pallas_testing.targets.leash import Leash
from pallas_testing.targets.relay import Course

PORT = 8080
"""Every member of a fleet in containers listens there, and so does its Service."""
ENV_LOAD = "PALLAS_LOAD_IMAGES"
"""A command that brings the images named behind it from Docker to the nodes."""
_NODES = ("kind", "minikube", "k3d")
"""Clusters that `pallas-gen build --load` knows, by the beginning of their context's name."""
_PATIENCE = 60.0
"""Seconds until a forward to a member stands."""
_POLL = 0.1
_INSTALL = ("helm", "upgrade", "--install")
_SHOWN = "deployments,replicasets,pods,services,configmaps,networkpolicies,events"
"""What may be shown to somebody who knows no secret."""


class Cluster(Target):
    """A release in the cluster of KUBECONFIG, reached by `kubectl port-forward`."""

    name = "cluster"

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.namespace = f"pallas-testing-{secrets.token_hex(6)}"
        self._leash: Leash | None = None
        self._forwards: dict[str, Leash] = {}
        self._ports: dict[str, int] = {}
        self._undo_removal: dict[str, Undo] = {}

    def start(self) -> None:
        self.file = copies.copy(self.order.file, self.order.folder / "project", self.claims)
        self._run("kubectl", "get", "--raw", "/readyz")
        advice = commands.generate(self.file, self.order, "helm")
        self._install = install_command(advice, self.namespace)
        self._load(*self._install[len(_INSTALL) :])
        self._ports = dict(zip(self.file.members, self.claims.ports(len(self.file.members)), strict=True))
        delete = ["kubectl", "delete", "namespace", self.namespace, "--ignore-not-found", "--timeout=180s"]
        self._leash = self._on_a_leash("down.log", [], [delete])
        self._run("kubectl", "create", "namespace", self.namespace)
        self._run(*self._install)

    def stop(self) -> None:
        for forward in self._forwards.values():
            forward.end()
        if self._leash:
            self._leash.end()
        self.claims.close()

    def url(self, member: str) -> str:
        """Return where this machine reaches a member, by a forward to one of its pods, made anew when that is gone.

        Raises:
            ConnectionError: it has no pod that runs.
        """
        forward = self._forwards.get(member)
        if forward is None or forward.code is not None:
            service = f"service/{slug(member)}"
            command = [*self._kubectl, "port-forward", service, f"{self._ports[member]}:{PORT}"]
            self._forwards[member] = forward = self._on_a_leash(f"forward-{slug(member)}.log", command, [])
        self._until_forwarded(forward, member)
        return f"http://127.0.0.1:{self._ports[member]}"

    def logs(self, member: str) -> str:
        options = ("--tail=-1", "--all-containers", "--ignore-errors", f"--selector={self._selector(member)}")
        with suppress(CannotDisturb):  # no pod has a log yet
            return self._disturb("logs", *options)
        return ""

    def ended(self) -> str:
        return ""

    def artifacts(self) -> Mapping[str, str]:
        return {"manifests in the namespace": self._disturb("get", _SHOWN, "--output=yaml")}

    def kill(self, agent: str) -> None:
        self._disturb("delete", "pod", f"--selector={self._selector(agent)}", "--force", "--grace-period=0")
        self._forget(agent)

    def restore(self, agent: str) -> None:
        self._disturb("rollout", "status", f"deployment/{slug(agent)}", f"--timeout={commands.TIMEOUT:g}s")
        self._forget(agent)

    def pause(self, agent: str) -> None:
        raise self.cannot("pause", "only its node can stop the first process of a pod")

    def restart(self, agent: str) -> None:
        self._disturb("rollout", "restart", f"deployment/{slug(agent)}")

    def remove(self, agent: str) -> None:
        """Take all pods away; the name of the Service stays, and leads nowhere."""
        self._undo_removal[agent] = self.scale(agent, 0)
        self._disturb("wait", "--for=delete", "pod", f"--selector={self._selector(agent)}", "--timeout=120s")
        self._forget(agent)

    def recreate(self, agent: str) -> None:
        self._undo_removal.pop(agent)()

    def scale(self, agent: str, count: int) -> Undo:
        deployment = f"deployment/{slug(agent)}"
        before = self._disturb("get", deployment, "--output=jsonpath={.spec.replicas}")
        self._disturb("scale", deployment, f"--replicas={count}")

        def undo() -> None:
            self._disturb("scale", deployment, f"--replicas={before}")
            self.restore(agent)

        return undo

    def partition(self, one: str, other: str) -> Undo:
        """Take each out of the other's NetworkPolicy; open connections go on where the network plugin lets them."""
        policies = {}
        for caller, callee in ((one, other), (other, one)):
            policy = json.loads(self._disturb("get", "networkpolicy", slug(callee), "--output=json"))
            policy["metadata"].pop("resourceVersion", None)
            narrowed = _without(policy, slug(caller))
            if narrowed != policy:
                policies[callee] = policy
                self._disturb("replace", "--filename=-", stdin=json.dumps(narrowed))
        if not policies:
            raise self.cannot("partition", f"no NetworkPolicy lets {one} and {other} reach each other")

        def undo() -> None:
            for policy in policies.values():
                self._disturb("replace", "--filename=-", stdin=json.dumps(policy))

        return undo

    def lead(self, fault: str, caller: str, callee: str, course: Course) -> Undo:
        raise self.cannot(fault, "a Service leads all its callers to the same pods; compose has it")

    def rotate_secret(self, name: str, content: str) -> Undo:
        file = self.file.path.parent / name
        if not any(option.endswith(f".content={name}") for option in self._install):
            raise LookupError(f"the chart takes no secret from {name}")
        before = file.read_text("utf-8")
        self._rotate(file, content)
        return partial(self._rotate, file, before)

    def _rotate(self, file: Path, content: str) -> None:
        file.write_text(content, "utf-8")
        commands.run([*self._install, "--wait"], self.file, self.order, failure=CannotDisturb)

    def fill_disk(self, agent: str) -> Undo:
        raise self.cannot("fill_disk", "its node evicts a pod whose disk is full, which is `kill`")

    def execute(self, member: str, code: str) -> str:
        return self._disturb("exec", f"deployment/{slug(member)}", "--", "python", "-c", code)

    @property
    def _kubectl(self) -> list[str]:
        return ["kubectl", "--namespace", self.namespace]

    def _run(self, *command: str) -> str:
        return commands.run(command, self.file, self.order)

    def _disturb(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what `kubectl` prints.

        Raises:
            CannotDisturb: it fails.
        """
        command = [*self._kubectl, *arguments]
        return commands.run(command, self.file, self.order, stdin=stdin, failure=CannotDisturb)

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

    def _until_forwarded(self, forward: Leash, member: str) -> None:
        end = time.monotonic() + _PATIENCE
        while forward.code is None and time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._ports[member]), timeout=1):
                return
            time.sleep(_POLL)
        self._forget(member)
        text = (self.order.folder / f"forward-{slug(member)}.log").read_text("utf-8", "replace")
        raise ConnectionError(f"no way to {member} now: {text[-500:]}")

    def _forget(self, member: str) -> None:
        """End the forward to a member whose pod is gone: it would notice with the next request only."""
        if forward := self._forwards.pop(member, None):
            forward.end()

    def _on_a_leash(self, output: str, command: list[str], clean: list[list[str]]) -> Leash:
        (self.order.folder / output).write_text("")
        return Leash(
            {"run": command, "clean": clean, "grace": 5.0},
            cwd=self.file.path.parent,
            env=self.order.environ,
            output=self.order.folder / output,
        )

    def _selector(self, member: str) -> str:
        return f"app.kubernetes.io/name={slug(member)}"


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


def _without(policy: dict[str, Any], caller: str) -> dict[str, Any]:
    """Return a NetworkPolicy that does not let pods of `caller` in."""

    def other(peer: dict[str, Any]) -> bool:
        labels = peer.get("podSelector", {}).get("matchLabels", {})
        component = "registry" if caller == REGISTRY else "agent"
        name = labels.get("app.kubernetes.io/name", caller if caller == REGISTRY else None)
        return (name, labels.get("app.kubernetes.io/component")) != (caller, component)

    rules = policy["spec"].get("ingress", [])
    narrowed = [{**rule, "from": list(filter(other, rule["from"]))} if rule.get("from") else rule for rule in rules]
    # a rule without anybody in `from` lets everybody in, so one that has lost all of them has to go
    remaining = [rule for rule, before in zip(narrowed, rules, strict=True) if rule == before or rule["from"]]
    return {**policy, "spec": {**policy["spec"], "ingress": remaining}}


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
