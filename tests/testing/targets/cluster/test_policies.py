"""NetworkPolicies from which a caller is taken, and given back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pallas_testing.targets.base import CannotDisturb
from pallas_testing.targets.cluster import policies
from pallas_testing.targets.cluster.target import Cluster

from .conftest import Runner

AGENT = {"app.kubernetes.io/component": "agent", "app.kubernetes.io/name": "tech-research"}
REGISTRY = {"app.kubernetes.io/component": "registry"}


def policy(*callers: dict[str, str], others: bool = False) -> dict[str, Any]:
    """Return a NetworkPolicy that lets these in, and whom the user lets in by a rule of its own."""
    peers = [{"podSelector": {"matchLabels": labels}} for labels in callers]
    rules = [{"ports": [{"port": 8080}], "from": peers}]
    if others:
        rules.append({"ports": [], "from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]})
    return {"metadata": {"name": "x", "resourceVersion": "7"}, "spec": {"ingress": rules}}


def test_a_partition_takes_the_caller_out_of_the_policy_and_back(started: Cluster, runner: Runner) -> None:
    runner.answers["get networkpolicy tech-research"] = json.dumps(policy(AGENT, REGISTRY, others=True))
    runner.answers["get networkpolicy registry"] = json.dumps(policy())
    started.partition("registry", "tech_research")()
    narrowed, whole = runner.stdin
    assert narrowed["spec"]["ingress"] == policy(AGENT, others=True)["spec"]["ingress"]
    assert whole["spec"] == policy(AGENT, REGISTRY, others=True)["spec"]
    assert "resourceVersion" not in whole["metadata"]
    runner.answers["get networkpolicy tech-research"] = json.dumps(policy(AGENT))
    with pytest.raises(CannotDisturb, match=r"partition: not on cluster: no NetworkPolicy lets registry and"):
        started.partition("registry", "tech_research")


def test_a_policy_without_callers_lets_nobody_in() -> None:
    assert policies.without(policy(AGENT), "tech-research")["spec"]["ingress"] == []
    assert policies.without(policy(AGENT), "other")["spec"] == policy(AGENT)["spec"]


def test_a_partition_that_fails_half_way_gives_the_first_policy_back() -> None:
    written: list[Any] = []

    def kubectl(*words: str, stdin: str = "") -> str:
        if words[0] == "get":
            return json.dumps(policy({**AGENT, "app.kubernetes.io/name": "b" if words[2] == "a" else "a"}))
        written.append(json.loads(stdin)["spec"]["ingress"])
        if len(written) == 2:
            raise CannotDisturb("replace")
        return ""

    with pytest.raises(CannotDisturb, match="replace"):
        policies.partition(kubectl, "a", "b")  # type: ignore[arg-type]
    assert [bool(ingress) for ingress in written] == [False, False, True, True]
