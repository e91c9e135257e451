"""`pallas status`: a table or JSON, and a code by which a script can wait."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from pallas_cli import main as command
from pallas_cli.running import stacks, status
from pallas_cli.running.catalogue import Member
from pallas_cli.running.locate import Registry
from pallas_cli.running.owner import Fleet
from tests.cli.conftest import Stand


def test_a_fleet_that_is_well(stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["status"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["NAME", "STATE", "URL"],
        ["desk", "ok", f"{stand.url}/mcp"],
        ["model", "not", "probed", "(service)"],
    ]


def test_one_that_is_not_well_is_shown_with_its_reason(
    stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand.states["desk"] = {"status": "error", "reason": "Exited", "message": "exited\x1b[2J"}
    assert command.main(["status", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    url = f"{stand.url}/mcp"
    assert document["agents"] == [
        {"name": "desk", "status": "error", "message": "exited\x1b[2J", "reason": "Exited", "url": url}
    ]
    assert document["services"] == [{"name": "model", "status": "not probed"}]
    assert command.main(["status"]) == 1
    assert f"desk   error       {url}  exited\\x1b[2J\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "is_well"), [("ok", True), ("degraded", True), ("starting", False), ("error", False)]
)
def test_a_script_can_wait_until_all_are_well(state: str, is_well: bool) -> None:
    assert status.well([Member("a", "agent", "ok"), Member("b", "agent", state)]) is is_well


def test_nobody_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["status", "--registry", "http://127.0.0.1:9"]) == 1
    assert capsys.readouterr().err.startswith("pallas status: no registry answers at http://127.0.0.1:9: ")


def test_colours_are_for_terminals() -> None:
    members = [Member("a", "agent", "ok", url="u"), Member("b", "agent", "unknown", url="u")]
    assert "\x1b[32mok     \x1b[0m" in status.text(members, coloured=True)
    assert "\x1b" not in status.text(members)


def test_watching_asks_docker_once_as_long_as_the_registry_answers(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question may take seconds where the engine is slow."""
    asked = []
    stand.fleet = {"name": "demo", "placement": "container"}
    registry = Registry(stand.url, Fleet("demo", project / "agents.yaml"))
    monkeypatch.setattr(stacks, "all_here", lambda patience: asked.append(patience) or [])
    monkeypatch.setattr(status.time, "sleep", lambda seconds: None)
    blocks = status._blocks(registry, Namespace(format="text", interval=1))
    assert all(next(blocks).startswith("NAME") for _ in range(3))
    assert len(asked) == 1
    stand.fleet = {"name": "other", "placement": "container"}
    assert "that of another fleet, `other`" in next(blocks)
    stand.fleet = {"name": "demo", "placement": "container"}
    assert next(blocks).startswith("NAME")
    assert len(asked) == 2


def test_watching_shows_each_change_once(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = iter([{}, {"desk": {"status": "error"}}, {"desk": {"status": "error"}}])

    def wait(seconds: float) -> None:
        assert seconds == 0.5
        try:
            stand.states.update(next(steps))
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(status.time, "sleep", wait)
    assert command.main(["status", "--watch", "--interval", "0.5"]) == 130
    printed = capsys.readouterr().out
    assert printed.count("NAME") == 2
    assert printed.index(" ok ") < printed.index(" error ")
