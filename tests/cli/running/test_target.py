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
from pallas_contract.launch.compose_containers import Stack

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
    assert target.find(tmp_path / "agents.yaml") == target.Running("compose", stack=Stack("", (compose,)))
    assert calls() == [f"docker compose --project-directory {tmp_path} ps --quiet"]
    monkeypatch.setenv("CONTAINERS", "")
    assert target.find(tmp_path / "agents.yaml") is None


def test_a_relative_folder_is_that_of_the_containers_too(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/compose.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert target.find(Path("sub/agents.yaml")) == target.Running(
        "compose", stack=Stack("", (tmp_path / "sub/compose.yaml",))
    )
    assert calls() == [f"docker compose --project-directory {tmp_path}/sub ps --quiet"]


def stack_of(folder: Path, fleet: Path) -> Path:
    """Write the part of a compose file in `folder` that tells its fleet file."""
    folder.mkdir(exist_ok=True)
    text = f"      PALLAS_AGENTS_CONFIG: /project/f\n      source: {fleet}\n      target: /project/f\n"
    (folder / "compose.yaml").write_text(text)
    return folder / "compose.yaml"


@pytest.mark.parametrize("verb", ["logs", "stop"])
def test_a_stack_elsewhere_is_known_by_the_fleet_file_it_was_written_for(
    verb: str, tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = tmp_path / "desk" / "agents.yaml"
    fleet.parent.mkdir()
    fleet.write_text("agents: {desk: {module: a, port: 24201}}\n")
    file = stack_of(fleet.parent / "deploy", fleet)
    other = stack_of(tmp_path / "other", tmp_path / "other" / "agents.yaml")
    monkeypatch.setenv("REGISTRIES", f"a\t{other}\t\nsecond\t{file}\t\n")
    monkeypatch.chdir(fleet.parent)
    assert command.main([verb]) == 0
    docker = f"docker compose --project-directory {file.parent} --project-name second --file {file}"
    assert calls() == [f"{docker} ps --quiet{' --all' if verb == 'logs' else ''}", f"{docker} {verb}"]
    monkeypatch.setenv("CONTAINERS", "")
    assert command.main([verb]) == (1 if verb == "logs" else 0)
    assert "this fleet does not run here" in "".join(capsys.readouterr())


@pytest.mark.parametrize("verb", ["logs", "stop"])
def test_what_docker_does_not_say_is_not_taken_for_a_fleet_that_does_not_run(
    verb: str, tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agents.yaml").write_text("agents: {desk: {module: a, port: 24201}}\n")
    monkeypatch.setenv("REFUSAL", "permission denied\n")
    monkeypatch.chdir(tmp_path)
    assert command.main([verb]) == 1
    printed = capsys.readouterr()
    message = f"pallas {verb}: docker does not list its containers: permission denied\n    so nobody knows"
    assert (printed.out, printed.err.startswith(message)) == ("", True)


def test_of_several_stacks_one_has_to_be_named(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "agents.yaml").write_text("agents: {desk: {module: a, port: 24201}}\n")
    one, two = (stack_of(tmp_path / name, tmp_path / "agents.yaml") for name in ("one", "two"))
    monkeypatch.setenv("REGISTRIES", f"one\t{one}\t\ntwo\t{two}\t\n")
    monkeypatch.chdir(tmp_path)
    assert command.main(["logs"]) == 1
    assert capsys.readouterr().err == (
        "pallas logs: agents.yaml: several stacks of this fleet are here: name one\n"
        f"    -o {one.parent} (compose project one)\n    -o {two.parent} (compose project two)\n"
    )
    assert command.main(["logs", "-o", "two"]) == 0
    assert calls()[-1].endswith(f"--project-name two --file {two} logs")


def test_a_folder_that_is_named_comes_before_the_processes(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where docker does not know its registry, and where nothing is in it."""
    config = tmp_path / "agents.yaml"
    config.write_text("agents: {desk: {module: a, port: 24201}}\n")
    files = run_files.of(config)
    files.folder.mkdir(parents=True)
    files.log.write_text("desk | of processes\n")
    monkeypatch.chdir(tmp_path)
    assert command.main(["logs", "-o", "deploy"]) == 1
    assert capsys.readouterr().err.startswith(f"pallas logs: {tmp_path}/deploy/compose.yaml is not there: name the fo")
    file = stack_of(tmp_path / "deploy", config)
    with run_files.locked(files.lock):
        assert command.main(["logs", "-o", "deploy"]) == 0
        assert calls()[-1] == f"docker compose --project-directory {file.parent} logs"
    monkeypatch.setenv("CONTAINERS", "")
    assert command.main(["logs", "-o", "deploy"]) == 1
    assert "has no containers of deploy\n" in capsys.readouterr().err


def test_who_starts_a_fleet_are_pallas_and_each_compose_file_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert target.starts(Path("agents.yaml")) == "`pallas up`"
    stack_of(tmp_path, Path("agents.yaml"))
    stack_of(tmp_path / "deploy", Path("../agents.yaml"))
    stack_of(tmp_path / "elsewhere", Path("../other.yaml"))
    compose = "`docker compose up --wait` or `docker compose -f deploy/compose.yaml up --wait`"
    assert target.starts(Path("agents.yaml")) == f"`pallas up` or {compose}"
    assert target.starts(tmp_path / "b.yaml") == f"`pallas up -f {tmp_path}/b.yaml`"


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
