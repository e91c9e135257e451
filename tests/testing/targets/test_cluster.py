"""The fleet in Kubernetes: which commands are run, in which order, and what is made of their answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pallas_testing.targets import cluster, commands
from pallas_testing.targets.base import CannotDisturb, CannotStart, Order
from pallas_testing.targets.cluster import Cluster

ADVICE = """\
wrote chart/values.yaml
next: pallas-gen build --push
helm upgrade --install hello chart --namespace hello --create-namespace \\
  --set-file secrets.env.content=.env
"""
MANIFEST = """\
kind: Deployment
spec: {template: {spec: {initContainers: [{image: b:1}], containers: [{image: a:1}, {image: b:1}]}}}
---
kind: ConfigMap
data: {image: c}
"""


class Runner:
    """Commands that are noted instead of run, and leashes that hold nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        self.answers = {"kubectl config current-context": "mine\n", "helm template": MANIFEST}
        self.failure = ""
        self.stdin: list[str] = []
        monkeypatch.setattr(commands, "run", self.run)
        monkeypatch.setattr(cluster, "Leash", self.leash)

    def run(
        self, command: Sequence[str], *_: object, stdin: str | None = None, failure: type[Exception] = CannotStart
    ) -> str:
        self.stdin += [stdin] if stdin else []
        words = ["pallas-gen", *command[4:]] if "pallas_gen" in command else command
        line = " ".join(words)
        self.lines.append(line)
        if self.failure and self.failure in line:
            raise failure(line)
        answers = {"pallas-gen helm": ADVICE, **self.answers}
        return next((answer for start, answer in answers.items() if start in line), "")

    def leash(self, order: Any, **_: object) -> SimpleNamespace:
        self.lines += [f"leash: {' '.join(command)}" for command in [order["run"], *order["clean"]] if command]
        return SimpleNamespace(code=None, end=lambda: self.lines.append("leash: end"))


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.delenv(cluster.ENV_LOAD, raising=False)
    return Runner(monkeypatch)


@pytest.fixture
def fleet(tmp_path: Path, runner: Runner) -> Cluster:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "agents.yaml").write_text("agents: {tech_research: {module: a, port: 24201}}\n")
    (tmp_path / "work").mkdir()
    fleet = Cluster(Order(tmp_path / "project" / "agents.yaml", tmp_path / "work"))
    fleet.namespace = "ns"
    return fleet


def test_the_chart_is_installed_into_a_namespace_that_goes_with_the_test(fleet: Cluster, runner: Runner) -> None:
    fleet.start()
    fleet.stop()
    assert runner.lines == [
        "kubectl get --raw /readyz",
        "pallas-gen helm -f agents.yaml",
        "kubectl config current-context",
        "leash: kubectl delete namespace ns --ignore-not-found --timeout=180s",
        "kubectl create namespace ns",
        "helm upgrade --install hello chart --namespace ns --set-file secrets.env.content=.env",
        "leash: end",
    ]


def test_no_cluster_is_said_before_anything_is_made(fleet: Cluster, runner: Runner) -> None:
    runner.failure = "/readyz"
    with pytest.raises(CannotStart, match="kubectl get --raw /readyz"):
        fleet.start()
    fleet.stop()
    assert runner.lines == ["kubectl get --raw /readyz"]


def test_a_chart_that_nobody_says_how_to_install_is_not_installed(fleet: Cluster, runner: Runner) -> None:
    runner.answers["pallas-gen helm"] = "wrote nothing\n"
    with pytest.raises(CannotStart, match="does not say how to install the chart:\nwrote nothing"):
        cluster.install_command("wrote nothing\n", "ns")


def test_images_are_brought_to_the_nodes_as_somebody_says(
    fleet: Cluster, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cluster.ENV_LOAD, "tools/load --quiet")
    fleet.start()
    fleet.stop()
    assert runner.lines[3:6] == [
        "pallas-gen build -f agents.yaml",
        "helm template hello chart --namespace ns --set-file secrets.env.content=.env",
        "tools/load --quiet a:1 b:1",
    ]


def test_kind_has_a_way_of_its_own(fleet: Cluster, runner: Runner) -> None:
    runner.answers["kubectl config current-context"] = "kind-mine\n"
    fleet.start()
    fleet.stop()
    assert runner.lines[3] == "pallas-gen build -f agents.yaml --load kind"


def test_faults_are_commands_and_what_undoes_them(fleet: Cluster, runner: Runner) -> None:
    fleet.start()
    runner.answers["--output=jsonpath={.spec.replicas}"] = "2"
    runner.lines.clear()
    fleet.kill("tech_research")
    fleet.restore("tech_research")
    fleet.restart("tech_research")
    fleet.remove("tech_research")
    fleet.recreate("tech_research")
    undo = fleet.scale("tech_research", 3)
    undo()
    status = "rollout status deployment/tech-research --timeout=1800s"
    get = "get deployment/tech-research --output=jsonpath={.spec.replicas}"
    expected = [
        "delete pod --selector=app.kubernetes.io/name=tech-research --force --grace-period=0",
        status,
        "rollout restart deployment/tech-research",
        get,
        "scale deployment/tech-research --replicas=0",
        "wait --for=delete pod --selector=app.kubernetes.io/name=tech-research --timeout=120s",
        "scale deployment/tech-research --replicas=2",
        status,
        get,
        "scale deployment/tech-research --replicas=3",
        "scale deployment/tech-research --replicas=2",
        status,
    ]
    assert runner.lines == [f"kubectl --namespace ns {line}" for line in expected]
    fleet.stop()


def policy(*callers: dict[str, str], others: bool = False) -> dict[str, Any]:
    """Return a NetworkPolicy that lets these in, and whom the user lets in by a rule of its own."""
    peers = [{"podSelector": {"matchLabels": labels}} for labels in callers]
    rules = [{"ports": [{"port": 8080}], "from": peers}]
    if others:
        rules.append({"ports": [], "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]})
    return {"metadata": {"name": "x", "resourceVersion": "7"}, "spec": {"ingress": rules}}


AGENT = {"app.kubernetes.io/component": "agent", "app.kubernetes.io/name": "tech-research"}
REGISTRY = {"app.kubernetes.io/component": "registry"}


def test_a_partition_takes_the_caller_out_of_the_policy_and_back(fleet: Cluster, runner: Runner) -> None:
    fleet.start()
    runner.answers["get networkpolicy tech-research"] = json.dumps(policy(AGENT, REGISTRY, others=True))
    runner.answers["get networkpolicy registry"] = json.dumps(policy())
    fleet.partition("registry", "tech_research")()
    narrowed, whole = [json.loads(text) for text in runner.stdin]
    assert narrowed["spec"]["ingress"] == policy(AGENT, others=True)["spec"]["ingress"]
    assert whole["spec"] == policy(AGENT, REGISTRY, others=True)["spec"]
    assert "resourceVersion" not in whole["metadata"]
    runner.answers["get networkpolicy tech-research"] = json.dumps(policy(AGENT))
    with pytest.raises(CannotDisturb, match=r"partition: not on cluster: no NetworkPolicy lets registry and"):
        fleet.partition("registry", "tech_research")
    fleet.stop()


def test_a_policy_without_callers_lets_nobody_in() -> None:
    assert cluster._without(policy(AGENT), "tech-research")["spec"]["ingress"] == []
    assert cluster._without(policy(AGENT), "other")["spec"] == policy(AGENT)["spec"]


def test_a_secret_is_rotated_by_an_upgrade(fleet: Cluster, runner: Runner) -> None:
    fleet.start()
    file = fleet.file.path.with_name(".env")
    file.write_text("first")
    runner.lines.clear()
    undo = fleet.rotate_secret(".env", "second")
    assert file.read_text() == "second"
    undo()
    assert file.read_text() == "first"
    upgrade = "helm upgrade --install hello chart --namespace ns --set-file secrets.env.content=.env --wait"
    assert runner.lines == [upgrade, upgrade]
    with pytest.raises(LookupError, match=r"the chart takes no secret from key\.txt"):
        fleet.rotate_secret("key.txt", "second")
    fleet.stop()


@pytest.mark.parametrize(
    ("verb", "arguments"), [("lead", ("slow", "a", "b", None)), ("lead", ("cut", "a", "b", None)), ("fill_disk", "a")]
)
def test_what_a_pod_has_not_is_refused_with_the_reason(fleet: Cluster, verb: str, arguments: Sequence[Any]) -> None:
    with pytest.raises(CannotDisturb, match=f"{arguments[0] if verb == 'lead' else verb}: not on cluster: "):
        getattr(fleet, verb)(*arguments)


def test_what_kubernetes_has_not_is_refused_by_name(fleet: Cluster, runner: Runner) -> None:
    fleet.start()
    with pytest.raises(CannotDisturb, match="pause: not on cluster: only its node can stop"):
        fleet.pause("tech_research")
    runner.failure = "delete pod"
    with pytest.raises(CannotDisturb, match="delete pod"):
        fleet.kill("tech_research")
    runner.failure = "logs"
    assert fleet.logs("tech_research") == ""
    fleet.stop()


def test_a_forward_that_has_ended_is_made_anew(fleet: Cluster, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.start()
    monkeypatch.setattr(fleet, "_until_forwarded", lambda *_: None)
    url = fleet.url("registry")
    runner.lines.clear()
    assert fleet.url("registry") == url
    assert runner.lines == []
    fleet._forwards["registry"].code = 1  # type: ignore[misc]
    assert fleet.url("registry") == url
    assert runner.lines == [f"leash: kubectl --namespace ns port-forward service/registry {url[17:]}:8080"]
    fleet._forwards["registry"].code = 1  # type: ignore[misc]
    fleet.order.folder.joinpath("forward-registry.log").write_text("error: unable to forward")
    monkeypatch.undo()
    with pytest.raises(ConnectionError, match="no way to registry now: error: unable to forward"):
        fleet._until_forwarded(fleet._forwards["registry"], "registry")
    fleet.stop()
