"""A fleet in Kubernetes: generated, installed by Helm, and what can be done to it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pallas_contract import __version__, names
from pallas_contract.fleet import fastagent_files
from pallas_gen import cli
from pallas_testing.fleet import start
from pallas_testing.fleet.start import Running
from pallas_testing.targets.base import Order
from pallas_testing.targets.cluster.target import ENV_LOAD, Cluster
from tests.ports import free_port

RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
PATIENCE = 540.0
"""Seconds until a fleet is up, on a machine that has much else to do: a test here may take ten minutes."""
READY = "180s"
"""Ten pods that each take 4 s of CPU, on two cores that have other work too."""


def call(*command: str | Path, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run to the end; a failure shows what was said."""
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, timeout=timeout)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


class Release:
    """One installed fleet; agents are called by their names in agents.yaml."""

    def __init__(self, config: Path, namespace: str) -> None:
        self.config, self.namespace, self.name = config, namespace, "fleet"
        self.chart = config.parent / "chart"
        self.first_look: dict[str, str] = {}
        """The registry's states when the installation had been waited for."""
        self._forwards: dict[str, tuple[subprocess.Popen[str], int]] = {}
        self.options: tuple[str, ...] | None = None
        """With which it was last installed or upgraded; None where it is not installed."""
        self._generated: object = None
        self.rolled_out = False
        """It was waited for since."""
        self._kinds = ""
        self._validated = False

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        return call("kubectl", "-n", self.namespace, *arguments, check=check).stdout

    def objects(self, kinds: str, selector: str = "") -> list[dict[str, Any]]:
        more = ("-l", selector) if selector else ()
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", kinds, "-o", "json", *more))["items"]
        return items

    def helm(self, verb: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = call("helm", verb, self.name, "-n", self.namespace, *arguments, check=check)
        if verb in ("rollback", "uninstall"):
            self.options = None
        return done

    def upgrade(
        self, *options: str, check: bool = True, pallas_gen: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """`pallas-gen helm`, where a file has changed, then install or upgrade with what it wrote.

        It is called in this process, but for another one that `pallas_gen` names.

        Helm compares the first manifest with the API's description, for a fifth of a second and as much of the API's;
        whatever it applies is judged by the API itself.
        """
        if (chart := (tuple(pallas_gen), self._files())) != self._generated:
            self._generate(pallas_gen)
            self._generated = chart
        secrets = self.config.parent / fastagent_files.SECRETS[0]
        secret = ("--set-file", f"secrets.fastagent-secrets-yaml.content={secrets}") if secrets.exists() else ()
        known = ("--disable-openapi-validation",) if self._validated else ()
        self.rolled_out = False
        done = self.helm("upgrade", str(self.chart), "--install", *known, *secret, *options, check=check)
        self.options = options if done.returncode == 0 else None
        self._validated = self._validated or done.returncode == 0
        return done

    def _generate(self, pallas_gen: Sequence[str]) -> None:
        arguments = ("helm", "-f", str(self.config), "-o", str(self.chart))
        if pallas_gen:
            call(*pallas_gen, *arguments)
        else:
            done = CliRunner().invoke(cli.app, arguments)
            assert done.exit_code == 0, done.output

    def _files(self) -> frozenset[tuple[Path, int]]:
        """Return the files of the project, each with when it was written."""
        files = (path for path in self.config.parent.rglob("*") if not path.is_relative_to(self.chart))
        return frozenset((path, path.stat().st_mtime_ns) for path in files if path.is_file())

    @property
    def installed(self) -> bool:
        """Helm knows the release."""
        return self.helm("status", check=False).returncode == 0

    def ready(self, agent: str) -> bool:
        """Each of the agent's pods says that it can be called, and there is one."""
        conditions = [pod["status"].get("conditions", []) for pod in self.pods(agent).values()]
        return bool(conditions) and all(_is_ready(each) for each in conditions)

    def wait(self) -> None:
        """Until every Deployment is rolled out."""
        self.kubectl("rollout", "status", "deployment", f"--timeout={READY}")
        self.rolled_out = True

    def uninstall(self) -> None:
        """Until all is gone but what stays, pods too, which Helm does not wait for."""
        self.helm("uninstall", "--wait", "--timeout", "120s")
        mine = ("-l", f"app.kubernetes.io/instance={self.name}")
        self.kubectl(
            "wait", "--for=delete", "pods", *mine, "--timeout=120s", check=False
        )  # an error where none is left

    def pods(self, agent: str = "") -> dict[str, dict[str, Any]]:
        """UID -> pod that is not on its way out; of one agent or of all workloads."""
        labels = f"app.kubernetes.io/instance={self.name}"
        labels += f",app.kubernetes.io/name={names.slug(agent)}" if agent else ""
        found = self.objects("pods", labels)
        return {pod["metadata"]["uid"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}

    def templates(self) -> dict[str, Any]:
        """Workload -> template of its pods: another one is a roll-out."""
        return {item["metadata"]["name"]: item["spec"]["template"] for item in self.objects("deployments")}

    def addresses(self, agent: str) -> set[str]:
        return {pod["status"].get("podIP", "") for pod in self.pods(agent).values()}

    def python(self, member: str, code: str) -> str:
        """Run Python in a member's container."""
        return self.kubectl("exec", f"deployment/{names.slug(member)}", "--", "python", "-c", code).strip()

    def applied_by_another_tool(self) -> int:
        """Objects of the release that another tool may apply server-side: there would be an error for a conflict."""
        manifest = self.config.with_name("manifest.yaml")
        manifest.write_text(call("helm", "get", "manifest", self.name, "-n", self.namespace).stdout)
        options = ("--server-side", "--dry-run=server", "--field-manager=another", "-f", str(manifest))
        said = self.kubectl("apply", *options)
        manifest.unlink()
        return said.count("serverside-applied")

    def left(self) -> set[tuple[str, str]]:
        """Every object in the namespace, of any kind, that a namespace does not have from the start."""
        if not self._kinds:
            kinds = self.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
            self._kinds = ",".join(kinds)
        found = {(item["kind"], item["metadata"]["name"]) for item in self.objects(self._kinds)}
        given = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
        return {(kind, name) for kind, name in found - given if kind != "Event"}

    def url(self, member: str) -> str:
        """A local URL of a member's Service; a forward to a pod that is gone is made anew."""
        process, port = self._forwards.get(member, (None, 0))
        if process is None or process.poll() is not None:
            self._forwards[member] = process, port = self._forward(member)
        return f"http://127.0.0.1:{port}"

    def _forward(self, member: str) -> tuple[subprocess.Popen[str], int]:
        port = free_port()
        command = ["kubectl", "-n", self.namespace, "port-forward", f"service/{names.slug(member)}"]
        process = subprocess.Popen(
            [*command, f"{port}:{names.CONTAINER_PORT}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        if "Forwarding" not in process.stdout.readline():
            process.communicate()
            raise AssertionError(f"no way to {member}")
        return process, port

    def service(self, member: str) -> str:
        """The URL of a member's Service: the node is this machine, and none of its connections is bound to a pod."""
        address = self.kubectl(
            "get", "service", names.slug(member), "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}"
        )
        return f"http://{address}"

    def close(self) -> None:
        """End the forwards."""
        for process, _ in self._forwards.values():
            process.kill()
            process.communicate()
        self._forwards.clear()


class Started(Release):
    """A release that the plugin has installed, and leads this machine to."""

    def __init__(self, running: Running) -> None:
        assert isinstance(running.target, Cluster)
        super().__init__(running.target.file.path, running.target.namespace)
        self.name = running.target.file.name
        self._target = running.target

    def url(self, member: str) -> str:
        return self._target.url(member)

    def close(self) -> None:
        """End the forwards: one that leads to a pod which is gone would notice too late."""
        assert self._target._forwards is not None
        self._target._forwards.close()


@contextmanager
def running(config: Path, *, build: bool = False) -> Iterator[Running]:
    """Yield the fleet of an agents.yaml, up in a namespace that enforces the restricted Pod Security Standard.

    Nothing of it is left afterwards. The kit's images are on the nodes (see `cluster`); `build` brings its own there.
    """
    folder = config.parent.with_name(f"{config.parent.name}.running")
    folder.mkdir()
    with start.running(
        "cluster", Order(config, folder, {} if build else {ENV_LOAD: ""}), {}, patience=PATIENCE
    ) as fleet:
        assert isinstance(fleet.target, Cluster)
        done = call("kubectl", "label", "namespace", fleet.target.namespace, RESTRICTED)
        assert "violate" not in done.stderr, "pods that it has already"
        yield fleet


def _is_ready(conditions: list[dict[str, Any]]) -> bool:
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def until(met: Callable[[], bool], what: str, *, within: float) -> None:
    """Ask once a second."""
    end = time.monotonic() + within
    while not met():
        assert time.monotonic() < end, f"after {within:g} s still not: {what}"
        time.sleep(1)


def shared(factory: pytest.TempPathFactory) -> Path:
    """Return the folder by which all workers know who has the cluster.

    PALLAS_TEST_CLUSTER names that of several runs side by side (tools/test).
    """
    session = factory.getbasetemp()
    alone = session.parent if "PYTEST_XDIST_WORKER" in os.environ else session
    return Path(os.environ.get("PALLAS_TEST_CLUSTER", alone))


@contextmanager
def cluster(root: Path, session: Path) -> Iterator[None]:
    """Bring up the project's own cluster with the images of this checkout, ended by its last user if it was not up.

    Or that of KUBECONFIG, which has them. `session` is a folder that all workers of this run share. The `kubectl` of
    our cluster is the first on PATH: it takes half the processor time of others.
    """
    if os.environ.get("KUBECONFIG"):
        yield
        return
    tool = root / "tools" / "cluster"
    with users(session, 1) as count:
        if count == 1 and call(tool, "status", check=False).returncode != 0:
            (session / "cluster.ours").touch()
        os.environ["KUBECONFIG"] = call(tool, "up", timeout=1800).stdout.strip()
        path, binaries = os.environ["PATH"], Path(os.environ["KUBECONFIG"]).parents[1] / "bin"
        os.environ["PATH"] = f"{binaries}{os.pathsep}{path}"
        os.environ[ENV_LOAD] = shlex.join([str(tool), "load"])
        if count == 1:
            load(f"pallas-agent:{__version__}", f"pallas-registry:{__version__}")
    try:
        yield
    finally:
        del os.environ["KUBECONFIG"], os.environ[ENV_LOAD]
        os.environ["PATH"] = path
        with users(session, -1) as count:
            if count == 0 and (session / "cluster.ours").exists():
                call(tool, "down")
                (session / "cluster.ours").unlink()


@contextmanager
def users(session: Path, change: int) -> Iterator[int]:
    """Count one user of the cluster more or less; meanwhile no other worker does."""
    with (session / "cluster.users").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        count = int(file.read() or "0") + change
        yield count
        file.truncate(0)
        file.write(str(count))


def load(*images: str) -> None:
    """Bring images from Docker to the cluster's nodes."""
    call(*shlex.split(os.environ[ENV_LOAD]), *images)


@contextmanager
def namespace(name: str) -> Iterator[str]:
    """A namespace that enforces the restricted Pod Security Standard, gone afterwards."""
    call("kubectl", "delete", "namespace", name, "--ignore-not-found", "--timeout=120s")
    call("kubectl", "create", "namespace", name)
    call("kubectl", "label", "namespace", name, RESTRICTED)
    try:
        yield name
    finally:
        call("kubectl", "delete", "namespace", name, "--timeout=120s", check=False)
