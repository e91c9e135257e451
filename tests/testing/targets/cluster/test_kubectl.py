"""Pods of a Deployment that are made otherwise for a while."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pallas_testing.targets.base import CannotDisturb
from pallas_testing.targets.cluster.target import Cluster

from .conftest import Runner, pod


def test_pods_are_as_changed_and_then_as_they_were(started: Cluster, runner: Runner) -> None:
    spec = {"containers": [{"image": "a"}]}
    runner.answers["get deployment tech-research"] = json.dumps({"spec": {"template": {"spec": spec}}})

    def change(spec: dict[str, Any]) -> None:
        spec["containers"][0]["image"] = "b"

    undo = started._kubectl.alter("tech_research", change)
    undo()
    patches = [json.loads(line.partition("--patch=")[2]) for line in runner.lines if " patch " in line]
    assert [patch[0]["value"]["containers"][0]["image"] for patch in patches] == ["b", "a"]
    assert {patch[0]["path"] for patch in patches} == {"/spec/template/spec"}


def test_a_change_that_does_not_come_up_is_undone(started: Cluster, runner: Runner) -> None:
    runner.answers["get deployment tech-research"] = json.dumps({"spec": {"template": {"spec": {"a": 1}}}})
    runner.failure = '"a": 2'
    with pytest.raises(CannotDisturb, match="patch deployment"):
        started._kubectl.alter("tech_research", lambda spec: spec.update(a=2))
    assert [line.partition("value")[2] for line in runner.lines if "patch" in line] == [
        '": {"a": 2}}]',
        '": {"a": 1}}]',
    ]


def test_the_pods_of_before_are_waited_for(started: Cluster, runner: Runner) -> None:
    leaving = pod("old")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    runner.pods([leaving, pod("new")])
    started._kubectl.settle("tech_research")
    assert runner.lines[2:] == ["kubectl wait --for=delete pod/old --timeout=180s"]
