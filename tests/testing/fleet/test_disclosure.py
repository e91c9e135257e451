"""What a fleet shows: each place is searched, and a secret where its user has put it is none that got out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pallas_testing.answers.answer import Answer
from pallas_testing.answers.calls import Call, Progress
from pallas_testing.fleet import disclosure, start
from pallas_testing.fleet.face import Fleet
from pallas_testing.targets import table
from pallas_testing.targets.base import Order

from .registry_stub import Stub

CANARY = "s3cret-canary"


class Showing(Stub):
    """A fleet with the secret in its metrics and in what its target tells."""

    def start(self) -> None:
        super().start()
        self.change("harper", "error", CANARY)
        self.change("harper", "ok")
        self.metrics = f'pallas_x{{key="{CANARY}"}} 1\n'
        folder = self.order.folder / "copy"
        folder.mkdir()
        for name in ("agents.yaml", "mine.py", ".env"):
            (folder / name).write_text((self.order.file.parent / name).read_text())
        (folder / ".env").write_text(f"PORT=1 KEY={CANARY}")
        (folder / "compose.yaml").write_text(f"a:\n  b: {CANARY}\n")
        self.file = replace(self.file, path=folder / "agents.yaml")

    def artifacts(self) -> Mapping[str, str]:
        return {"docker inspect x": base64.b64encode(b"ab" + CANARY.encode()).decode()}


def test_each_place_is_told_and_the_users_own_files_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "agents.yaml").write_text("agents: {harper: {module: a, port: 1}}\n")
    (project / "mine.py").write_text(f"KEY = '{CANARY}'")
    (project / ".env").write_text(f"KEY={CANARY}")
    monkeypatch.setattr(table, "target", lambda _, order: Showing(order))
    with start.running("stub", Order(project / "agents.yaml", tmp_path), {}) as running:
        fleet = Fleet(running)
        fleet.registry._mark = 0
        progress = (Progress(0.0, 1, None, "no"), Progress(0.0, 2, None, CANARY))
        fleet.answers.append(Answer("no", progress, Call("harper", "harper__harper", 0.0)))
        places = list(disclosure.places(running.target, fleet.registry, fleet.answers, CANARY))
    assert places == [
        "/metrics of the registry, line 1",
        "/events of the registry, line 2",
        "/metrics of harper, line 1",
        "answer 1 of harper, line 3",
        "the file compose.yaml, line 2",
        "docker inspect x, line 1",
    ]


def test_an_agent_that_is_down_or_not_published_shows_nothing() -> None:
    def refuse(_: str) -> str:
        raise LookupError

    assert disclosure._document(SimpleNamespace(url=lambda _: "http://127.0.0.1:1"), "a", "/x") == ""  # type: ignore[arg-type]
    assert disclosure._document(SimpleNamespace(url=refuse), "a", "/x") == ""  # type: ignore[arg-type]
