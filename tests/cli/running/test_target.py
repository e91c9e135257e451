"""Which target runs a fleet: the one whose lock is held, else the one whose containers are there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pallas_cli import main as command
from pallas_cli.running import target
from pallas_cli.trouble import Trouble
from pallas_contract.launch import run_files

Calls = Callable[[], list[str]]


def test_processes_are_known_by_their_lock(tmp_path: Path, calls: Calls) -> None:
    (tmp_path / "compose.yaml").write_text("")
    lock = run_files.of(tmp_path / "agents.yaml").lock
    lock.parent.mkdir(parents=True)
    with run_files.locked(lock):
        assert target.find(tmp_path / "agents.yaml") == target.Running("processes", pid=os.getpid())
    assert calls() == []


def test_containers_are_asked_for_where_there_is_a_compose_file(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert target.find(tmp_path / "agents.yaml") is None
    assert calls() == []
    compose = tmp_path / "compose.yaml"
    compose.write_text("")
    assert target.find(tmp_path / "agents.yaml") == target.Running("compose", compose=compose)
    assert calls() == [f"docker compose --project-directory {tmp_path} ps --quiet"]
    monkeypatch.setenv("CONTAINERS", "")
    assert target.find(tmp_path / "agents.yaml") is None


def test_a_relative_folder_is_that_of_the_containers_too(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/compose.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert target.find(Path("sub/agents.yaml")) == target.Running("compose", compose=tmp_path / "sub/compose.yaml")
    assert calls() == [f"docker compose --project-directory {tmp_path}/sub ps --quiet"]


@pytest.mark.parametrize("verb", ["logs", "stop"])
def test_containers_of_another_folder_are_left_alone(
    verb: str, tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compose knows both by the name of the project."""
    first, copy = tmp_path / "first" / "compose.yaml", tmp_path / "copy" / "compose.yaml"
    for file in (first, copy):
        file.parent.mkdir()
        file.touch()
    monkeypatch.setenv("MADE_BY", f"agent\t{first}\nregistry\t{first}\n")
    monkeypatch.chdir(copy.parent)
    assert command.main([verb]) == 1
    trouble = f"the containers of the compose project of {copy} are those of {first}\n"
    hint = "    look after them there, or give this fleet another `name` in agents.yaml\n"
    assert capsys.readouterr().err == f"pallas {verb}: {trouble}{hint}"
    assert [line.partition(f"{copy.parent} ")[2].split()[0] for line in calls()] == ["ps"]
    monkeypatch.chdir(first.parent)
    assert command.main([verb]) == 0
    assert calls()[-1].split()[4] == verb


def test_docker_that_fails_is_trouble(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "compose.yaml").write_text("")
    monkeypatch.setenv("CODE", "3")
    with pytest.raises(Trouble, match=r"`docker compose .* ps --quiet` fails"):
        target.find(tmp_path / "agents.yaml")


def test_without_docker_there_are_no_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "compose.yaml").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert target.find(tmp_path / "agents.yaml") is None
    with pytest.raises(Trouble, match="docker is not here"):
        target.tool(["docker", "compose", "stop"])


@pytest.mark.parametrize(("code", "result"), [("0", 0), ("3", 1)])
def test_a_tool_that_fails_is_the_world(code: str, result: int, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE", code)
    assert target.tool(["docker", "x"]) == result
