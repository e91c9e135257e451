"""A caller that is rolled out with another address for its callee: a relay's, which is told the course."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from pallas_testing.targets.base import CannotDisturb, FaultEnded
from pallas_testing.targets.cluster.kubectl import Kubectl
from pallas_testing.targets.cluster.target import Cluster
from pallas_testing.targets.relay import Course

from .conftest import Runner

SLOW = Course(latency=1.0, jitter=0.0, cut_after=None)
CUT = Course(latency=0.0, jitter=0.0, cut_after=10)
CALLER = {
    "securityContext": {"runAsNonRoot": True},
    "serviceAccountName": "tech-research",
    "containers": [{"image": "a:1", "securityContext": {"privileged": False}, "env": [{"name": "KEY"}]}],
}
RELAY = "get pod pallas-testing-relay"
LABELS = {"app.kubernetes.io/name": "tech-research", "app.kubernetes.io/component": "agent"}
DEPLOYMENT = {"spec": {"selector": {"matchLabels": LABELS}, "template": {"spec": CALLER}}}


@pytest.fixture
def altered(started: Cluster, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the addresses with which the caller is rolled out, and the ends of that; the callee is at port 8000."""
    done: list[Any] = []

    def alter(_: Kubectl, member: str, change: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        spec: dict[str, Any] = {}
        change(spec)
        done.append((member, *spec["hostAliases"]))
        return lambda: done.append("undo")

    monkeypatch.setattr(Kubectl, "alter", alter)
    runner.answers["get deployment tech-research"] = json.dumps(DEPLOYMENT)
    runner.answers["get service argos"] = json.dumps({"spec": {"ports": [{"port": 8000}]}})
    runner.answers["get networkpolicy argos"] = json.dumps({"spec": {}})
    runner.answers["{.status.podIP}"] = "10.0.0.7"
    runner.answers[RELAY] = json.dumps({"status": {"phase": "Running"}})
    return done


def courses(runner: Runner) -> list[Course]:
    """Return what the relay has been told, in order."""
    told = [re.search(r"sendall\(b'(.*)\\n'\)", line) for line in runner.lines if "exec pallas-testing-relay-1" in line]
    return [json.loads(match[1]) for match in told if match]


def test_a_relay_is_told_the_course_once_its_caller_is_there(
    started: Cluster, runner: Runner, altered: list[Any]
) -> None:
    undo = started.lead("slow", "tech_research", "argos", SLOW)
    names = ["argos", "argos.ns", "argos.ns.svc"]
    assert altered == [("tech_research", {"ip": "10.0.0.7", "hostnames": names})]
    assert [course["latency"] for course in courses(runner)] == [0.0, 1.0]
    again = started.lead("cut", "tech_research", "argos", CUT)
    assert len(altered) == 1, "who is led already is not rolled out again"
    again()
    assert [course["cut_after"] for course in courses(runner)[2:]] == [10, None]
    assert courses(runner)[-1]["latency"] == 1.0
    runner.lines.clear()
    undo()
    assert altered[1:] == ["undo"]
    relay = "pod/pallas-testing-relay-1"
    policies = "NetworkPolicy/pallas-testing-relay-1 NetworkPolicy/pallas-testing-relay-1-caller"
    _, deletion = runner.lines
    assert deletion.lower() == f"kubectl delete {relay} {policies} --ignore-not-found".lower()
    started.lead("slow", "tech_research", "argos", SLOW)()
    assert any("pod/pallas-testing-relay-2" in line for line in runner.lines), "none is told what another one is"


def test_a_relay_has_no_right_that_its_caller_has_not(started: Cluster, runner: Runner, altered: list[Any]) -> None:
    started.lead("slow", "tech_research", "argos", SLOW)
    relay, let_in, let_out = runner.stdin[0]["items"]
    (container,) = relay["spec"]["containers"]
    assert relay["spec"]["securityContext"] == {"runAsNonRoot": True}
    assert (container["image"], container["securityContext"]) == ("a:1", {"privileged": False})
    assert "env" not in container
    assert relay["spec"]["restartPolicy"] == "Never"
    assert "serviceAccountName" not in relay["spec"]
    assert container["args"][2:] == ["argos", "8000"]
    labels = {"app.kubernetes.io/name": "pallas-testing-relay-1", "app.kubernetes.io/component": "test"}
    assert relay["metadata"]["labels"] == labels
    ports = [{"port": 8000, "protocol": "TCP"}]
    assert let_in["spec"] == {
        "podSelector": {"matchLabels": labels},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": ports, "from": [{"podSelector": {"matchLabels": LABELS}}]}],
        "egress": [{}],
    }
    assert let_out["spec"] == {
        "podSelector": {"matchLabels": LABELS},
        "policyTypes": ["Egress"],
        "egress": [{"ports": ports, "to": [{"podSelector": {"matchLabels": labels}}]}],
    }


def test_without_policies_a_relay_brings_none(started: Cluster, runner: Runner, altered: list[Any]) -> None:
    runner.answers["get networkpolicy argos"] = ""
    started.lead("slow", "tech_research", "argos", SLOW)
    assert [entry["kind"] for entry in runner.stdin[0]["items"]] == ["Pod"]


@pytest.mark.parametrize(("caller", "callee"), [("registry", "tech_research"), ("argos", "tech_research")])
def test_who_depends_on_nobody_is_led_nowhere(started: Cluster, runner: Runner, caller: str, callee: str) -> None:
    with pytest.raises(CannotDisturb, match=f"^cut: {caller} is no agent with {callee} in its depends_on"):
        started.lead("cut", caller, callee, CUT)
    assert runner.lines == []


def test_a_relay_that_does_not_come_up_leaves_nothing(started: Cluster, runner: Runner, altered: list[Any]) -> None:
    runner.failure = "wait --for=condition=Ready"
    with pytest.raises(CannotDisturb, match=r"^slow: no relay between tech_research and argos: .*wait"):
        started.lead("slow", "tech_research", "argos", SLOW)
    assert runner.lines[-1].startswith("kubectl delete")
    assert altered == []


@pytest.mark.parametrize(
    ("status", "end"),
    [
        ({"phase": "Failed"}, r"has ended \(Failed\): no more memory"),
        ({"phase": "Failed", "reason": "Evicted"}, r"has ended \(Evicted\): no more memory"),
        (None, "is gone"),
    ],
)
def test_a_relay_that_ended_by_itself_is_told_and_undone(
    started: Cluster, runner: Runner, altered: list[Any], status: dict[str, str] | None, end: str
) -> None:
    undo = started.lead("slow", "tech_research", "argos", SLOW)
    again = started.lead("cut", "tech_research", "argos", CUT)
    runner.answers[RELAY] = json.dumps({"status": status}) if status else ""
    runner.answers["logs pallas-testing-relay-1"] = "no more memory\n"
    runner.failure = "exec pallas-testing-relay-1"
    for fault, end_of_fault in (("cut", again), ("slow", undo)):
        with pytest.raises(FaultEnded, match=f"^{fault}: the relay between tech_research and argos {end}$"):
            end_of_fault()
    assert altered[1:] == ["undo"]
    assert runner.lines[-1].lower().startswith("kubectl delete pod/pallas-testing-relay-1")


def test_a_relay_that_cannot_be_told_the_course_is_taken_away(
    started: Cluster, runner: Runner, altered: list[Any]
) -> None:
    runner.failure = '"latency": 1.0'
    with pytest.raises(CannotDisturb, match=r"^slow: no relay between tech_research and argos: ") as failed:
        started.lead("slow", "tech_research", "argos", SLOW)
    assert failed.value.__notes__ == ["this fault failed half way: it has been undone"]
    assert altered[1:] == ["undo"]
    assert runner.lines[-1].startswith("kubectl delete pod/pallas-testing-relay-1".replace("pod", "Pod"))
    started.lead("cut", "tech_research", "argos", CUT)
    assert len(altered) == 3, "the next one has a relay of its own"
    with pytest.raises(CannotDisturb, match=r"^slow: "):
        started.lead("slow", "tech_research", "argos", SLOW)
    told = [line for line in runner.lines if "exec pallas-testing-relay-2" in line]
    assert '"cut_after": 10' in told[-1], "it is on the course of before again"
