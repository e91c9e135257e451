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
    assert stacks.all_here() == [Stack("desk", (tmp_path / "compose.yaml",), frozenset({("127.0.0.1", 24200)}))]


def test_without_docker_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stacks.all_here() == []


@pytest.mark.parametrize(
    "refusal",
    [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "failed to connect to the docker API at unix:///a; check if the path is correct and if the daemon is running",
    ],
)
def test_without_an_engine_on_this_machine_there_are_none(
    refusal: str, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFUSAL", refusal)
    assert stacks.all_here() == []
    monkeypatch.setenv("REFUSAL", refusal.replace("unix:///", "tcp://elsewhere/"))
    with pytest.raises(stacks.NoAnswer):
        stacks.all_here()


def test_docker_that_fails_or_hangs_is_no_empty_list(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSAL", "permission denied")
    with pytest.raises(stacks.NoAnswer, match="does not list its containers: permission denied\n    so nobody knows"):
        stacks.all_here()

    def hangs(*_: object, timeout: float, **__: object) -> None:
        raise subprocess.TimeoutExpired("docker", timeout)

    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(stacks.NoAnswer, match="no answer in 5 s"):
        stacks.all_here(stacks.BRIEF)
