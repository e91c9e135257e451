"""`pallas up` is `pallas` with the file by its usual option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pallas_agent_runtime.local import supervisor
from pallas_agent_runtime.local.watching import follow
from pallas_cli import main as command
from pallas_cli.talk import console
from pallas_contract import extras


def test_up_runs_the_fleet_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(extras, "missing", lambda *_: [])
    monkeypatch.setattr(supervisor, "main", lambda path, **flags: seen.append((path, flags)) or 3)
    assert command.main(["up", "-f", str(tmp_path)]) == 3
    assert command.main(["up", "-f", str(tmp_path), "--allow-plain-secrets"]) == 3
    path = tmp_path / "agents.yaml"
    assert seen == [
        (path, {"allow_plain_secrets": False, "beside": None}),
        (path, {"allow_plain_secrets": True, "beside": None}),
    ]


def test_with_watch_its_files_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(extras, "missing", lambda *_: [])
    monkeypatch.setattr(supervisor, "main", lambda path, following, **_: seen.append(following) or 0)
    assert command.main(["up", "--watch", "-f", str(tmp_path), "--allow-plain-secrets"]) == 0
    assert [(following.func, following.keywords) for following in seen] == [
        (follow.following, {"allow_plain_secrets": True})
    ]


def test_with_console_a_page_goes_on_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(extras, "missing", lambda *_: [])
    monkeypatch.setattr(supervisor, "main", lambda path, **flags: seen.append(flags["beside"]) or 0)
    monkeypatch.setattr(console, "beside", lambda file: f"the page of {file}")
    assert command.main(["up", "--console", "-f", str(tmp_path)]) == 0
    assert [beside() for beside in seen] == [f"the page of {tmp_path / 'agents.yaml'}"]
