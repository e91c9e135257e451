"""The registry of another fleet on the same port is named, and never taken for the own one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_cli import main as command
from pallas_cli.running import stacks
from pallas_cli.running.owner import Fleet, OtherFleet, refuse_other
from pallas_contract.launch import run_files
from pallas_contract.launch.compose_containers import Stack
from pallas_contract.launch.owner import Owner
from tests.cli.conftest import Stand

URL = "http://127.0.0.1:24200"
PUBLIC = "https://fleet.example"


@pytest.fixture
def desk(tmp_path: Path) -> Fleet:
    (tmp_path / "desk").mkdir()
    return Fleet("desk", tmp_path / "desk" / "agents.yaml")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Stack]:
    """The stacks that docker lists."""
    listed: list[Stack] = []
    monkeypatch.setattr(stacks, "all_here", lambda patience: listed)
    return listed


@pytest.mark.parametrize("url", [URL, PUBLIC])
@pytest.mark.parametrize("placement", ["local", "container"])
def test_a_fleet_of_another_name_is_another(url: str, placement: str, desk: Fleet, here: list[Stack]) -> None:
    project = run_files.project_id(desk.file)
    with pytest.raises(OtherFleet) as refused:
        refuse_other(Owner("hello", placement, project), url, desk)
    message, hint = str(refused.value).splitlines()
    assert message == f"the registry at {url} is that of another fleet, `hello`; {desk.file} is `desk`"
    assert hint.startswith(f"    end that fleet where it was started, or give {desk.file} other ports")
    assert hint.endswith(f"name it: --registry {url}")


def test_processes_of_a_copy_are_another_fleet_of_the_name(desk: Fleet, tmp_path: Path) -> None:
    refuse_other(Owner("desk", "local", run_files.project_id(desk.file)), URL, desk)
    copied = Owner("desk", "local", run_files.project_id(tmp_path / "copy" / "agents.yaml"))
    with pytest.raises(OtherFleet, match="another fleet of this name, whose fleet file is not "):
        refuse_other(copied, URL, desk)
    refuse_other(copied, PUBLIC, desk)  # elsewhere the same file has another path


def test_containers_of_a_copy_are_another_fleet_of_the_name(desk: Fleet, here: list[Stack], tmp_path: Path) -> None:
    containers = Owner("desk", "container")
    refuse_other(containers, URL, desk)  # nobody knows whose
    texts = {"desk": desk.file, "copy": tmp_path / "copy" / "agents.yaml"}
    for name, file in texts.items():
        file.parent.mkdir(exist_ok=True)
        (file.parent / "compose.yaml").write_text(
            "      PALLAS_AGENTS_CONFIG: /project/agents.yaml\n"
            "      source: ./agents.yaml\n      target: /project/agents.yaml\n"
        )
        here.append(
            Stack(name, (file.parent / "compose.yaml",), frozenset({("127.0.0.1", 24200 if name == "copy" else 24300)}))
        )
    with pytest.raises(OtherFleet, match=rf"of this name, that of {texts['copy']} in containers"):
        refuse_other(containers, URL, desk)
    refuse_other(containers, "http://localhost:24300", desk)
    refuse_other(containers, URL, desk, trusted=True)
    refuse_other(containers, PUBLIC, desk)


def test_an_engine_that_does_not_answer_is_in_nobodys_way(desk: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(patience: float) -> list[Stack]:
        raise stacks.NoAnswer

    monkeypatch.setattr(stacks, "all_here", refuse)
    refuse_other(Owner("desk", "container"), URL, desk)


def test_an_older_registry_says_nothing(desk: Fleet) -> None:
    refuse_other(None, URL, desk)


@pytest.mark.parametrize("words", [["status"], ["call", "desk", "hi"]])
def test_in_a_copied_project_the_first_fleet_does_not_answer(
    words: list[str], stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand.fleet = {"name": "demo", "placement": "local", "project": run_files.project_id(project / "first.yaml")}
    assert command.main(words) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    first = f"pallas {words[0]}: the registry at {stand.url} is that of another fleet of this name, whose "
    assert printed.err.startswith(first)
    assert stand.calls == []
    stand.fleet["project"] = run_files.project_id(project / "agents.yaml")
    assert command.main(["status"]) == 0
