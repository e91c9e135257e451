"""The fleets in containers here, by the registries that docker lists."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pallas_cli.running import stacks
from pallas_contract.launch.compose_containers import Stack

Calls = Callable[[], list[str]]


def test_docker_lists_them(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "compose.yaml").touch()
    monkeypatch.setenv("REGISTRIES", f"desk\t{tmp_path}/compose.yaml\t127.0.0.1:24200->8080/tcp\n")
    assert stacks.all_here() == [Stack("desk", (tmp_path / "compose.yaml",), frozenset({24200}))]


def test_without_docker_or_an_answer_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stacks.all_here() == []

    def hangs(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("docker", 5)

    monkeypatch.setattr(subprocess, "run", hangs)
    assert stacks.all_here() == []
