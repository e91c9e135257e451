"""A release as the cluster has it: the chart's objects, and what somebody edited in them."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import configmaps, load
from pallas_gen.running import compose, kubernetes
from pallas_gen.running.tool import Done
from pallas_gen.targets.helm import chart, render, template

ROOT = Path(__file__).parents[3]
KINDS = {"Deployment", "NetworkPolicy"}
pytestmark = pytest.mark.helm


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> tuple[Plan, list[dict[str, Any]]]:
    """The plan of an example, and the objects of its chart as a cluster has them."""
    folder = shutil.copytree(ROOT / "examples" / "02-pallas", tmp_path_factory.mktemp("release") / "fleet")
    loaded = load.load(folder / "agents.yaml", {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    (folder / "values.yaml").write_text(render.render_values(plan, configmaps.read(folder, plan))[render.FILE])
    objects = template.render(chart.chart_dir(), render.secret_names(plan).values(), values=folder / "values.yaml")
    labelled = [entry for entry in objects if entry["kind"] in KINDS]
    for entry in labelled:
        entry["status"] = {"readyReplicas": entry["spec"].get("replicas", 1)}
    # the selector leaves out what is of the release and of no program
    return plan, [entry for entry in labelled if entry["metadata"]["labels"]["app.kubernetes.io/component"] != "fleet"]


Edit = Callable[[dict[str, Any]], object]


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    return deployment["spec"]["template"]["spec"]["containers"][0]


def pod(deployment: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def mount(deployment: dict[str, Any], **volume: Any) -> None:
    pod(deployment)["volumes"].append({"name": "more", **volume})
    container(deployment)["volumeMounts"].append({"name": "more", "mountPath": "/x"})


EDITS: dict[str, Edit] = {
    "research.privileges: has privileged, unlike": lambda it: container(it)["securityContext"].update(privileged=True),
    "research.privileges: has allowPrivilegeEscalation, the default cap": lambda it: container(it).update(
        securityContext={"readOnlyRootFilesystem": True}
    ),
    "research.privileges: has capability NET_ADMIN, unlike": lambda it: container(it)["securityContext"].update(
        capabilities={"add": ["NET_ADMIN"], "drop": ["ALL"]}
    ),
    "research.privileges: has hostNetwork, hostPID, unlike": lambda it: pod(it).update(hostNetwork=True, hostPID=True),
    "research.privileges: has automountServiceAccountToken, unlike": lambda it: pod(it).update(
        automountServiceAccountToken=True
    ),
    "research.user: is 0:10001, and 10001:10001": lambda it: pod(it)["securityContext"].update(runAsUser=0),
    "research.privileges: has may run as root, seccompProfile Unconfined": lambda it: container(it)[
        "securityContext"
    ].update(runAsNonRoot=False, seccompProfile={"type": "Unconfined"}),
    "research.privileges: has init container wait: privileged, unlike": lambda it: pod(it)["initContainers"][-1][
        "securityContext"
    ].update(privileged=True),
    "research.privileges: has init container wait: runs evil:1, unlike": lambda it: pod(it)["initContainers"][
        -1
    ].update(image="evil:1"),
    "research.image: is evil:1, and ": lambda it: container(it).update(image="evil:1"),
    "research.command: is sh, and ": lambda it: container(it).update(args=["sh"]),
    "research.variables: has DEBUG, ": lambda it: container(it)["env"].append({"name": "DEBUG", "value": "canary"}),
    "research.read_only: is False, ": lambda it: container(it)["securityContext"].pop("readOnlyRootFilesystem"),
    "research: does not run (not ready)": lambda it: it.update(status={}),
}


def answer(objects: Sequence[dict[str, Any]]) -> Callable[[Sequence[str]], Done]:
    def run(command: Sequence[str]) -> Done:
        assert command[:3] == ["kubectl", "--namespace", "here"]
        return Done(0, json.dumps({"items": objects}))

    return run


def lines(plan: Plan, objects: Sequence[dict[str, Any]]) -> list[str]:
    problems = list(kubernetes.problems(plan, "here", answer(objects)))
    assert "canary" not in str(problems)
    return [f"{problem.where}: {problem.message}".removeprefix("namespace here ") for problem in problems]


def test_a_release_of_the_chart_is_the_plan(release) -> None:
    plan, objects = release
    assert lines(plan, objects) == []


@pytest.mark.parametrize("expected", EDITS)
def test_an_edit_is_named(expected: str, release) -> None:
    plan, objects = copy.deepcopy(release)
    (deployment,) = (
        entry for entry in objects if entry["kind"] == "Deployment" and entry["metadata"]["name"] == "research"
    )
    EDITS[expected](deployment)
    (line,) = lines(plan, objects)
    assert line.startswith(expected)


def of_research(objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return next(it for it in objects if it["kind"] == "Deployment" and it["metadata"]["name"] == "research")


def test_a_folder_of_the_host_is_an_error(release) -> None:
    plan, objects = copy.deepcopy(release)
    mount(of_research(objects), hostPath={"path": "/var/run"})
    problems = {str(it.where): it for it in kubernetes.problems(plan, "here", answer(objects))}
    assert problems["namespace here research.privileges"].message == "has hostPath /var/run, unlike the plan"
    assert problems["namespace here research.privileges"].level == "error"


def test_what_values_can_ask_for_is_a_warning(release) -> None:
    plan, objects = copy.deepcopy(release)
    research = of_research(objects)
    mount(research, emptyDir={})
    next(it for it in container(research)["volumeMounts"] if it["name"] == "project")["readOnly"] = False
    container(research)["resources"]["limits"].update(memory="900Mi", cpu="250m")
    research["spec"]["template"]["spec"]["securityContext"].update(runAsUser=20001, runAsGroup=20001)
    assert [(it.where.field, it.message, it.level) for it in kubernetes.problems(plan, "here", answer(objects))] == [
        ("research.user", "is 20001:20001, and 10001:10001 in the plan", "warning"),
        (
            "research.mounts",
            "has /project from emptyDir project (writable), /x from emptyDir more (writable), unlike the plan",
            "warning",
        ),
        ("research.memory", "is 900 MiB, and 512 MiB in the plan", "warning"),
        ("research.cpus", "is 0.25, and 1 in the plan", "warning"),
    ]


def test_a_policy_that_is_gone(release) -> None:
    plan, objects = copy.deepcopy(release)
    policies = {entry["metadata"]["name"]: entry for entry in objects if entry["kind"] == "NetworkPolicy"}
    objects.remove(policies["research"])
    assert {line.partition(": ")[0] for line in lines(plan, objects)} >= {"research.networks"}


def test_a_fleet_without_policies_has_no_networks_to_compare(release) -> None:
    """`networkPolicy.enabled: false` is a value of the chart."""
    plan, objects = release
    assert lines(plan, [entry for entry in objects if entry["kind"] == "Deployment"]) == []


def test_missing_and_extra(release) -> None:
    plan, objects = copy.deepcopy(release)
    for entry in objects:
        if entry["metadata"]["name"] == "research" and entry["kind"] == "Deployment":
            entry["metadata"]["name"] = "old"
    found = lines(plan, objects)
    assert "research: does not run" in found
    assert found[-1] == "old: is not in the plan"


def test_pods_with_a_sidecar_are_not_as_installed(release) -> None:
    plan, objects = copy.deepcopy(release)
    deployment = next(entry for entry in objects if entry["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"].append({"name": "more"})
    assert lines(plan, objects)[0].startswith("namespace here: cannot be read as the kit's chart installs it")


def test_an_empty_namespace_and_nobody_to_ask(release) -> None:
    plan, _ = release
    assert lines(plan, []) == ["namespace here: has no release of the kit"]
    with pytest.raises(compose.NoAnswer, match="kubectl is not here"):
        list(kubernetes.problems(plan, "here", lambda _: None))
    with pytest.raises(compose.NoAnswer, match="kubectl: refused"):
        list(kubernetes.problems(plan, "here", lambda _: Done(1, "", "refused\n")))
