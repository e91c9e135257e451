"""What compose.override.yaml changes is a warning that names it; what is changed by hand beside it stays an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.problems import Problem
from pallas_gen.plan import Plan
from pallas_gen.running import compose
from pallas_gen.running.overrides import Files
from pallas_gen.running.tool import Done
from tests.generator.running.conftest import Docker


@pytest.fixture
def overridden(docker: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """A project with an overriding file, which gives `scout` a variable and a network."""
    monkeypatch.chdir(tmp_path)
    files = [tmp_path / "compose.yaml", tmp_path / "compose.override.yaml"]
    files[1].write_text("")
    for container in docker.containers:
        container["Config"]["Labels"]["com.docker.compose.project.config_files"] = ",".join(map(str, files))
    docker.of("scout")["Config"]["Env"].append("DEBUG=canary")
    docker.of("scout")["NetworkSettings"]["Networks"]["x_mine"] = {}
    docker.networks["scout"] = [name.removeprefix("x_") for name in docker.of("scout")["NetworkSettings"]["Networks"]]
    docker.alone["scout"] = "without"
    return docker


def problems(planned: Plan, docker: Docker) -> list[Problem]:
    return list(compose.problems(planned, Path("/nowhere"), {}, docker.run))


def levels(planned: Plan, docker: Docker) -> dict[str, str]:
    return {problem.where.field: problem.level for problem in problems(planned, docker)}


def test_what_the_users_own_file_says_is_a_warning_that_names_it(planned: Plan, overridden: Docker) -> None:
    assert levels(planned, overridden) == {"scout.variables": "warning", "scout.networks": "warning"}
    variables = problems(planned, overridden)[0]
    assert variables.message == (
        "has DEBUG, unlike the plan; its compose files say so, compose.override.yaml among them"
    )
    assert variables.hint.startswith("where that is not meant, take it out of compose.override.yaml, and ")


def test_a_network_by_hand_is_an_error_beside_it(planned: Plan, overridden: Docker) -> None:
    overridden.of("scout")["NetworkSettings"]["Networks"]["bridge"] = {}
    assert levels(planned, overridden) == {"scout.variables": "warning", "scout.networks": "error"}


def test_a_program_that_the_file_leaves_alone_is_an_error(planned: Plan, overridden: Docker) -> None:
    overridden.alone.clear()
    assert set(levels(planned, overridden).values()) == {"error"}


def test_a_container_that_is_not_what_the_files_say_is_an_error(planned: Plan, overridden: Docker) -> None:
    overridden.hashes["scout"] = "other"
    assert set(levels(planned, overridden).values()) == {"error"}


def test_one_that_has_ended_is_an_error(planned: Plan, overridden: Docker) -> None:
    overridden.of("scout")["State"]["Status"] = "exited"
    assert levels(planned, overridden)["scout"] == "error"


def test_without_an_overriding_file_nothing_is_asked(planned: Plan, docker: Docker) -> None:
    docker.of("scout")["Config"]["Env"].append("DEBUG=canary")
    docker.alone["scout"] = "without"
    assert levels(planned, docker) == {"scout.variables": "error"}


def test_files_that_are_gone_or_refused_say_nothing(tmp_path: Path) -> None:
    names = f"{tmp_path}/a.yaml,{tmp_path}/b.yaml"
    assert Files(names, "x", lambda _: Done(0, "scout ab\n")).hashes == {}
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).touch()
    assert Files(names, "x", lambda _: Done(0, "scout ab\n")).hashes == {"scout": "ab"}
    refused = Files(names, "x", lambda _: Done(1, "scout ab\n"))
    assert (refused.hashes, refused.changes("scout", "ab"), refused.has_networks("scout", [])) == ({}, False, False)
