"""`pallas-gen verify --running`: whom it asks, what it exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_contract.codes import Code
from pallas_gen.plan import Plan
from pallas_gen.running import check, tool
from pallas_gen.running.tool import Done
from tests.generator.running.conftest import FLEET, Docker


@pytest.fixture
def here(make, docker: Docker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Docker:
    """The project as the current folder, with its containers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPOSE_PROJECT_NAME", raising=False)
    make(FLEET)
    monkeypatch.setattr(tool, "run", docker.run)
    return docker


def test_what_runs_is_the_plan_or_not(here: Docker, run) -> None:
    assert run("verify", "--running")[0] == 0
    assert run("verify", "--running")[1] == (
        "agents.yaml: what runs in its containers is the plan, in all of its 4 workloads\n"
    )
    here.of("scout")["HostConfig"]["ReadonlyRootfs"] = False
    code, out, err = run("verify", "--running")
    assert (code, out) == (1, "")
    assert err.startswith("compose project x scout.read_only: is False, and True in the plan\n")
    code, out, _ = run("verify", "--running", "--format", "json")
    assert (code, json.loads(out)["problems"][0]["code"]) == (1, Code.RUNNING_DIFFERS)


def test_the_project_is_that_of_the_env_file_beside_the_fleet_file(here: Docker, make, run, tmp_path: Path) -> None:
    """As compose has it, and `pallas-gen compose`."""
    make(FLEET.replace("name: x", "name: other"))
    (tmp_path / ".env").write_text("COMPOSE_PROJECT_NAME=x\n")
    assert "lacks /run/secrets/.env from .env, unlike the plan" in run("verify", "--running")[2]
    for container in here.containers:
        if container["Config"]["Labels"]["io.pallas-kit.kind"] == "agent":
            mount = {"Type": "bind", "Source": f"{tmp_path}/.env", "Destination": "/run/secrets/.env", "RW": False}
            container["Mounts"].append(mount)
    assert run("verify", "--running")[0] == 0


def test_a_warning_is_no_difference(here: Docker, run) -> None:
    extra = here.of("db")
    here.containers.append(json.loads(json.dumps(extra)))
    here.containers[-1]["Name"] = "/x-mine-1"
    labels = here.containers[-1]["Config"]["Labels"]
    labels["com.docker.compose.service"] = "mine"
    del labels["io.pallas-kit.kind"]
    code, _, err = run("verify", "--running")
    assert (code, err.startswith("warning: compose project x mine: is not in the plan")) == (0, True)


@pytest.mark.parametrize(
    "words",
    [("--running", "--target", "compose"), ("--running", "-o", "out"), ("-n", "here")],
    ids=["a target", "a folder", "a namespace of files"],
)
def test_options_that_mean_nothing_together_are_refused(words: tuple[str, ...], here: Docker, run) -> None:
    assert run("verify", *words)[0] == 2


def test_who_does_not_answer_is_a_problem(planned: Plan) -> None:
    (problem,) = check.problems(planned, Path(), None, environ={}, run=lambda _: None)
    assert (problem.code, problem.message) == (Code.ENGINE_AWAY, "docker is not here")
    (problem,) = check.problems(planned, Path(), "here", environ={}, run=lambda _: Done(1, "", "refused"))
    assert (problem.code, problem.message) == (Code.ENGINE_AWAY, "kubectl: refused")


def test_a_name_that_compose_cannot_have(plan) -> None:
    unfit = plan(FLEET.replace("name: x", "name: Флот"))
    (problem,) = check.problems(unfit, Path(), None, environ={}, run=lambda _: None)
    assert problem.code is Code.COMPOSE_NAME
