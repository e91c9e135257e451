"""A fleet in Kubernetes whose commands are noted instead of run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pallas_testing.targets import commands
from pallas_testing.targets.base import CannotStart, Order
from pallas_testing.targets.cluster import forwards, target
from pallas_testing.targets.cluster.target import Cluster

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
FILE = """\
agents: {tech_research: {module: a, port: 24201, depends_on: [argos]}}
services: {argos: {image: x, port: 8000}}
"""


def pod(name: str, **status: Any) -> dict[str, Any]:
    """Return a pod that runs and is ready."""
    ready = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"started": True}],
    }
    return {"metadata": {"name": name}, "status": {**ready, **status}}


class Runner:
    """Commands that are noted instead of run, and leashes that hold nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        self.answers = {"kubectl config current-context": "mine\n", "helm template": MANIFEST}
        self.pods([pod("tech-research-1")])
        self.failure = ""
        self.stdin: list[Any] = []
        monkeypatch.setattr(commands, "run", self.run)
        monkeypatch.setattr(target, "Leash", self.leash)
        monkeypatch.setattr(forwards, "Leash", self.leash)

    def pods(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """Let a fleet have these pods."""
        self.answers["get pods"] = json.dumps({"items": pods})

    def run(
        self, command: Sequence[str], *_: object, stdin: str | None = None, failure: type[Exception] = CannotStart
    ) -> str:
        self.stdin += [json.loads(stdin)] if stdin else []
        words = ["pallas-gen", *command[4:]] if "pallas_gen" in command else command
        line = " ".join(words).replace("kubectl --namespace ns", "kubectl")
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
    """Return what notes the commands."""
    monkeypatch.delenv(target.ENV_LOAD, raising=False)
    return Runner(monkeypatch)


@pytest.fixture
def fleet(tmp_path: Path, runner: Runner) -> Cluster:
    """Return a fleet that is not started, in the namespace `ns`."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "agents.yaml").write_text(FILE)
    (tmp_path / "work").mkdir()
    fleet = Cluster(Order(tmp_path / "project" / "agents.yaml", tmp_path / "work"))
    fleet.namespace = "ns"
    return fleet


@pytest.fixture
def started(fleet: Cluster, runner: Runner) -> Iterator[Cluster]:
    """Yield the fleet, started, with no command noted so far."""
    fleet.start()
    runner.lines.clear()
    yield fleet
    fleet.stop()
