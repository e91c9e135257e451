"""The fleet in Kubernetes: which commands are run, in which order, and what is made of their answers."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable

import pytest

from pallas_testing.targets.base import CannotDisturb, CannotStart
from pallas_testing.targets.cluster import stopper, target
from pallas_testing.targets.cluster.kubectl import Kubectl
from pallas_testing.targets.cluster.target import Cluster

from .conftest import Runner, pod

STATUS = [
    "kubectl rollout status deployment/tech-research --timeout=1800s",
    "kubectl get pods --selector=app.kubernetes.io/name=tech-research --output=json",
]
"""How the roll-out of an agent is waited for."""


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


def test_a_chart_that_nobody_says_how_to_install_is_not_installed() -> None:
    with pytest.raises(CannotStart, match="does not say how to install the chart:\nwrote nothing"):
        target.install_command("wrote nothing\n", "ns")


def test_images_are_brought_to_the_nodes_as_somebody_says(
    fleet: Cluster, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(target.ENV_LOAD, "tools/load --quiet")
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


def test_who_is_reached_is_asked_from_within(started: Cluster, runner: Runner) -> None:
    runner.answers["kubectl exec"] = "tech-research: Connection refused\n"
    assert started.unreached("gateway", ["tech_research", "argos"]) == "tech-research: Connection refused"
    assert "--selector=app.kubernetes.io/name=gateway" in runner.lines[0]
    assert "for host, port in [('tech-research', 8080), ('argos', 8000)]:" in runner.lines[-1]


def test_the_question_who_is_reached_names_who_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        exec(target._REACH.format(addresses=[("127.0.0.1", port), ("127.0.0.2", port)]))
    assert re.fullmatch(r"127\.0\.0\.2: .+\n", capsys.readouterr().out)


def test_faults_are_commands_and_what_undoes_them(started: Cluster, runner: Runner) -> None:
    runner.answers["--output=jsonpath={.spec.replicas}"] = "2"
    started.kill("tech_research")
    started.restore("tech_research")
    started.restart("tech_research")
    started.remove("tech_research")
    started.recreate("tech_research")
    undo = started.scale("tech_research", 3)
    undo()
    get = "kubectl get deployment/tech-research --output=jsonpath={.spec.replicas}"
    assert runner.lines == [
        "kubectl delete pod --selector=app.kubernetes.io/name=tech-research --force --grace-period=0",
        *STATUS,
        "kubectl rollout restart deployment/tech-research",
        get,
        "kubectl scale deployment/tech-research --replicas=0",
        "kubectl wait --for=delete pod --selector=app.kubernetes.io/name=tech-research --timeout=120s",
        "kubectl scale deployment/tech-research --replicas=2",
        *STATUS,
        get,
        "kubectl scale deployment/tech-research --replicas=3",
        "kubectl scale deployment/tech-research --replicas=2",
        *STATUS,
    ]


def test_a_secret_is_rotated_by_an_upgrade_and_its_readers_are_waited_for(started: Cluster, runner: Runner) -> None:
    file = started.file.path.with_name(".env")
    file.write_text("first")
    undo = started.rotate_secret(".env", "second")
    assert file.read_text() == "second"
    install = "helm upgrade --install hello chart --namespace ns --set-file secrets.env.content=.env"
    upgrade = f"{install} --wait --disable-openapi-validation"
    waiting = [*STATUS, *(line.replace("tech-research", "argos") for line in STATUS)]
    assert runner.lines == [upgrade, *waiting]
    undo()
    assert file.read_text() == "first"
    assert runner.lines[len(waiting) + 1 :] == [upgrade, *waiting]
    with pytest.raises(LookupError, match=r"the chart takes no secret from key\.txt"):
        started.rotate_secret("key.txt", "second")


@pytest.fixture
def altered(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the pods with which agents are rolled out instead, each as a spec with a `/tmp`, and the ends of that."""
    done: list[object] = []

    def alter(_: Kubectl, member: str, change: Callable[[dict[str, object]], None]) -> Callable[[], None]:
        spec: dict[str, object] = {"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "state", "emptyDir": {}}]}
        change(spec)
        done.append((member, spec))
        return lambda: done.append("undo")

    monkeypatch.setattr(Kubectl, "alter", alter)
    return done


def test_a_disk_is_full_without_its_node_noticing(started: Cluster, runner: Runner, altered: list[object]) -> None:
    runner.pods([pod("a"), pod("b")])
    undo = started.fill_disk("tech_research")
    memory = {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}
    assert altered == [("tech_research", {"volumes": [memory, {"name": "state", "emptyDir": {}}]})]
    assert [line[:37] for line in runner.lines[1:]] == [f"kubectl exec {name} -- python -c \nimport e" for name in "ab"]
    undo()
    assert altered[1:] == ["undo"]
    runner.failure = "exec a"
    with pytest.raises(CannotDisturb, match="exec a"):
        started.fill_disk("tech_research")
    assert altered[3:] == ["undo"]


KUBECTL = Kubectl.command


def command(text: str) -> Callable[..., list[str]]:
    """Return what makes of `kubectl exec` a program that prints a text, and lives as long as its input."""
    program = [sys.executable, "-c", f"import sys; print({text!r}, flush=True); sys.stdin.read()"]
    return lambda kubectl, *words: program if words[0] == "exec" else KUBECTL(kubectl, *words)


def test_processes_stand_still_for_as_long_as_one_here_runs(
    started: Cluster, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner.pods([pod("a"), pod("b")])
    monkeypatch.setattr(Kubectl, "command", command(stopper.STOPPED))
    started.pause("tech_research")
    holding = started._stopped["tech_research"]
    assert [process.poll() for process in holding] == [None, None]
    started.resume("tech_research")
    started.resume("tech_research")
    assert [process.poll() for process in holding] == [0, 0]
    started.pause("tech_research")
    holding = started._stopped["tech_research"]
    started.stop()
    assert [process.poll() for process in holding] == [0, 0]


def test_where_the_kernel_refuses_pods_are_made_in_which_it_does_not(
    started: Cluster, monkeypatch: pytest.MonkeyPatch, altered: list[object]
) -> None:
    def answer(kubectl: Kubectl, *words: str) -> list[str]:
        shared = altered and words[-1] == stopper.SHARED
        return command(stopper.STOPPED if shared else f"{stopper.REFUSED}: Operation not permitted")(kubectl, *words)

    monkeypatch.setattr(Kubectl, "command", answer)
    started.pause("tech_research")
    ((member, spec),) = altered  # type: ignore[misc]
    assert (member, spec["shareProcessNamespace"]) == ("tech_research", True)


def test_a_pod_without_a_python_does_not_stop(started: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kubectl, "command", command("exec: python: not found"))
    with pytest.raises(CannotDisturb, match="pause: tech_research does not stop: exec: python: not found"):
        started.pause("tech_research")
    assert started._stopped == {}


def test_what_runs_in_a_member_runs_in_a_pod_that_stays(started: Cluster, runner: Runner) -> None:
    leaving = pod("a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    runner.pods([leaving, pod("b", conditions=[]), pod("c"), pod("d", phase="Pending")])
    runner.answers["exec c -- python"] = "here\n"
    assert started.execute("tech_research", "print(1)") == "here\n"
    runner.pods([leaving])
    with pytest.raises(CannotDisturb, match="tech_research has no pod that runs"):
        started.execute("tech_research", "print(1)")


def test_a_command_that_fails_is_said(started: Cluster, runner: Runner) -> None:
    runner.failure = "delete pod"
    with pytest.raises(CannotDisturb, match="delete pod"):
        started.kill("tech_research")
    runner.failure = "logs"
    assert started.logs("tech_research") == ""


def test_a_removal_that_fails_half_way_brings_the_agent_back(started: Cluster, runner: Runner) -> None:
    runner.answers["--output=jsonpath={.spec.replicas}"] = "2"
    runner.failure = "wait --for=delete"
    with pytest.raises(CannotDisturb, match="wait --for=delete") as failed:
        started.remove("tech_research")
    assert failed.value.__notes__ == ["this fault failed half way: it has been undone"]
    assert runner.lines[-3:] == ["kubectl scale deployment/tech-research --replicas=2", *STATUS]
    runner.failure = ""
    started.remove("tech_research")


def test_who_is_removed_is_not_removed_again(started: Cluster, runner: Runner) -> None:
    runner.answers["--output=jsonpath={.spec.replicas}"] = "2"
    started.remove("tech_research")
    runner.answers["--output=jsonpath={.spec.replicas}"] = "0"
    runner.lines.clear()
    with pytest.raises(CannotDisturb, match=r"^remove: tech_research is removed already"):
        started.remove("tech_research")
    assert runner.lines == []
    started.recreate("tech_research")
    assert runner.lines[0] == "kubectl scale deployment/tech-research --replicas=2"


@pytest.mark.parametrize("verb", ["kill", "scale"])
def test_a_verb_whose_command_fails_waits_for_what_was_there(started: Cluster, runner: Runner, verb: str) -> None:
    runner.failure = {"kill": "delete pod", "scale": "--replicas=3"}[verb]
    with pytest.raises(CannotDisturb, match=runner.failure):
        getattr(started, verb)("tech_research", *([3] if verb == "scale" else []))
    assert runner.lines[-2:] == STATUS


def test_a_secret_whose_upgrade_fails_is_as_before_and_both_failures_are_said(started: Cluster, runner: Runner) -> None:
    file = started.file.path.with_name(".env")
    file.write_text("first")
    runner.failure = "--wait"
    with pytest.raises(CannotDisturb, match="helm upgrade") as failed:
        started.rotate_secret(".env", "second")
    assert file.read_text() == "first"
    assert failed.value.__notes__[0].startswith("this fault failed half way: it could not be undone: helm upgrade")
