"""`pallas stop`: the one who holds the lock is asked to end, and waited for; containers by compose."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pallas_cli import main as command
from pallas_cli.running import stop
from pallas_cli.trouble import Trouble
from pallas_contract.launch import run_files

Calls = Callable[[], list[str]]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Path, ExitStack]]:
    """A lock that is held until the stack is closed."""
    path = run_files.of(tmp_path / "agents.yaml").lock
    path.parent.mkdir(parents=True)
    with ExitStack() as stack:
        stack.enter_context(run_files.locked(path))
        yield path, stack


def test_it_is_asked_once_and_waited_for(
    held: tuple[Path, ExitStack], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, stack = held
    signals: list[tuple[int, int]] = []
    steps: list[Callable[[], None]] = [lambda: None, stack.close]
    monkeypatch.setattr(stop.os, "kill", lambda pid, number: signals.append((pid, number)))
    monkeypatch.setattr(stop.time, "sleep", lambda _: steps.pop(0)())
    assert command.main(["stop", "-f", str(path.parents[2])]) == 0
    assert signals == [(stop.os.getpid(), signal.SIGTERM)]
    assert capsys.readouterr().out == f"{path.parents[2] / 'agents.yaml'}: stopped\n"


def test_one_that_goes_on_is_named(held: tuple[Path, ExitStack], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop.os, "kill", lambda *_: None)
    with pytest.raises(Trouble, match=rf"process {stop.os.getpid()} still runs after 0 s"):
        stop.end(held[0], patience=0)


def test_somebody_elses_is_theirs_to_stop(held: tuple[Path, ExitStack], monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(stop.os, "kill", kill)
    with pytest.raises(Trouble, match="is another user's"):
        stop.end(held[0])


def test_nothing_that_runs_is_no_failure(tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "agents.yaml").write_text("agents: {desk: {module: a, port: 24201}}\n")
    assert command.main(["stop", "-f", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'agents.yaml'}: this fleet does not run here\n"


def test_containers_are_stopped_by_compose(tmp_path: Path, calls: Calls) -> None:
    (tmp_path / "compose.yaml").write_text("")
    assert command.main(["stop", "-f", str(tmp_path)]) == 0
    assert calls()[-1] == f"docker compose --project-directory {tmp_path} stop"


def test_a_release_is_helms_to_take_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["stop", "-n", "demo"]) == 2
    assert "    take it away: helm uninstall RELEASE --namespace demo\n" in capsys.readouterr().err


def test_a_folder_without_a_fleet_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["stop", "-f", str(tmp_path)]) == 2
    assert "agents.yaml: no such file" in capsys.readouterr().err
