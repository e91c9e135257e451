"""What runs on this machine and `docker compose up` would change, said after the file is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_gen.targets.compose import running

FLEET = "name: Desk!\nagents:\n  scout: {module: agents.scout, port: 8101}\n"
listed = running.listed
"""As it is, without the stand-in of the tests."""


@pytest.mark.parametrize("verb", ["compose", "build"])
def test_a_fleet_of_the_same_name_in_another_folder_is_named(
    verb: str, make, run, containers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "first" / "compose.yaml"
    other.parent.mkdir()
    other.touch()
    make(FLEET)
    monkeypatch.chdir(tmp_path)
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho null\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert run("compose")[::2] == (0, "")
    containers.append(f"agent\t{other}")
    code, out, err = run(verb)
    assert code == 0
    assert out
    first, second = err.splitlines()
    assert first == f"warning: compose.yaml: its compose project `desk` has containers of {other}"
    assert second.startswith("    `docker compose up` here makes those anew")
    assert "change `name` and the ports" in second
    containers[:] = [f"agent\t{tmp_path}/compose.yaml"]
    assert run(verb)[::2] == (0, "")


def test_only_what_is_written_is_about_this_machine(make, run, containers: list[str], tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.touch()
    containers.append(f"agent\t{other}")
    file = str(make(FLEET))
    assert run("compose", "-f", file, "--stdout")[2] == ""
    assert "warning" not in run("compose", "-f", file, "--check")[2]


def test_docker_is_asked_for_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text('#!/bin/sh\nfor word; do last=$word; done; echo "$last"\n')
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert listed("desk") == "label=com.docker.compose.project=desk\n"


def test_without_docker_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert listed("desk") == ""


def test_a_name_of_the_environment_is_the_project_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []
    monkeypatch.setattr(running, "listed", lambda project: asked.append(project) or "")
    (tmp_path / ".env").write_text("COMPOSE_PROJECT_NAME=third\n")
    assert list(running.problems("desk", tmp_path / "compose.yaml")) == []
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "second")
    assert list(running.problems("desk", tmp_path / "compose.yaml")) == []
    assert asked == ["third", "second"]
