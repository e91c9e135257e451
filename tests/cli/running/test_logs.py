"""`pallas logs`: of processes the file of the run, whatever happens to it meanwhile; else the target's own tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pallas_agent_runtime.local import record
from pallas_cli import main as command
from pallas_cli.running import logs, target
from pallas_contract.launch import run_files
from tests.problem_lines import without_codes

Calls = Callable[[], list[str]]


@pytest.fixture
def log(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of a fleet that has ended; its folder is the working directory."""
    monkeypatch.delenv("PALLAS_AGENTS_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    with record.running(tmp_path / "agents.yaml") as written:
        assert written is not None
        written.write("tech_research", "|", "one")
        written.write("desk", "|", "two")
        written.write("desk", ":", "ready after 1.0 s")
    return run_files.of(tmp_path / "agents.yaml").log


def test_all_lines_of_the_last_run(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["logs"]) == 0
    assert capsys.readouterr().out == "tech_research | one\ndesk | two\ndesk : ready after 1.0 s\n"


@pytest.mark.parametrize("name", ["tech_research", "tech-research"])
def test_the_lines_of_one_member(name: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["logs", name, "--file", str(log.parents[2])]) == 0
    assert capsys.readouterr().out == "tech_research | one\n"


def test_where_nothing_runs_it_says_whose_lines_these_are(
    log: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["logs"]) == 0
    first = "agents.yaml: nothing runs here; the last run as processes, which ended at "
    assert capsys.readouterr().err.startswith(first)
    compose = log.parents[2] / "compose.yaml"
    compose.write_text("")
    monkeypatch.setenv("CONTAINERS", "")
    assert command.main(["logs", "-q"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(target, "_containers", lambda stack, *, ended: ["abc"] if ended else [])
    assert command.main(["logs"]) == 0
    assert capsys.readouterr().err.endswith(f"; those of its containers: pallas logs -o {compose.parent}\n")
    with run_files.locked(run_files.of(log.parents[2] / "agents.yaml").lock):
        assert command.main(["logs"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("name", "hint"), [("dsek", "    did you mean `desk`?\n"), ("zzz", ""), ("desk", "")])
def test_a_mistyped_member_of_containers_is_answered_with_the_nearest(
    name: str,
    hint: str,
    tmp_path: Path,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A service of an overriding file is none of the fleet's: compose is asked, whatever the name."""
    (tmp_path / "agents.yaml").write_text("name: x\nagents: {desk: {card: a.md, port: 24201}}\n")
    (tmp_path / "compose.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(target, "tool_lines", lambda command, cwd: 1)
    assert command.main(["logs", name]) == 1
    assert capsys.readouterr().err == hint


def test_a_member_that_has_printed_nothing(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["logs", "des", "-q"]) == 2
    error = without_codes(capsys.readouterr().err)
    assert error.startswith("des: has printed nothing, or there is no such member\n")
    assert error.endswith("agents.log has lines of desk, tech_research\n")


def test_no_run_at_all(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["logs"]) == 2
    assert without_codes(capsys.readouterr().err).startswith("agents.yaml: no such file\n")
    (tmp_path / "agents.yaml").write_text("agents: {desk: {module: a, port: 24201}}\n")
    assert command.main(["logs"]) == 1
    assert "this fleet does not run here, and has not as processes\n    start it" in capsys.readouterr().err


def test_what_comes_is_followed_through_a_new_file_until_the_fleet_ends(tmp_path: Path) -> None:
    files = run_files.of(tmp_path / "agents.yaml")
    files.folder.mkdir(parents=True)
    log = record.Log(files, longest=30)
    files.older_log.write_text("desk | from before\n")
    texts = ["two", "three, in a new file"]
    with run_files.locked(files.lock):
        log.write("desk", "|", "one")
        following = logs.lines(files, follow=True, pause=lambda: log.write("desk", "|", texts.pop(0)))
        seen = [next(following) for _ in range(4)]
        assert seen == ["desk | from before\n", "desk | one\n", "desk | two\n", "desk | three, in a new file\n"]
        log.write("desk", "|", "last")
        log.close()
    assert list(following) == ["desk | last\n"]


def test_containers_are_asked_by_compose(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compose.yaml").write_text("")
    assert command.main(["logs", "tech_research", "-f", "--file", str(tmp_path)]) == 0
    assert calls()[-1] == f"docker compose --project-directory {tmp_path} logs --follow tech-research"
    assert command.main(["logs", "--file", str(tmp_path)]) == 0
    assert calls()[-1] == f"docker compose --project-directory {tmp_path} logs"


def test_a_run_that_has_ended_needs_no_docker(
    log: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (log.parents[2] / "compose.yaml").write_text("")
    (log.parents[2] / "agents.yaml").write_text("agents: {desk: {module: a, port: 24201}}\n")
    monkeypatch.setenv("CODE", "1")
    assert command.main(["logs", "tech_research"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "tech_research | one\n"
    assert "ps --quiet` fails: \n    its containers, if there are any, are left alone\n" in printed.err
    assert command.main(["stop"]) == 0
    assert {call.split()[4] for call in calls()} == {"ps"}


def test_lines_of_containers_are_text_in_a_pipe_and_docker_s_own_on_a_terminal(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "compose.yaml").write_text("")
    lines = b"\x1b[2Kdesk-1  | one\n\x1b[2Kdesk-1  | \x1b[2Kits own\n"
    monkeypatch.setenv("LINES_OF_LOGS", lines.decode())
    assert command.main(["logs", "--file", str(tmp_path)]) == 0
    assert capfdbinary.readouterr().out == b"desk-1  | one\ndesk-1  | \x1b[2Kits own\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert command.main(["logs", "--file", str(tmp_path)]) == 0
    assert capfdbinary.readouterr().out == lines


def test_containers_that_have_ended_are_asked_too(tmp_path: Path, calls: Calls) -> None:
    (tmp_path / "compose.yaml").write_text("")
    assert command.main(["logs", "--file", str(tmp_path)]) == 0
    assert [call.partition(f"{tmp_path} ")[2] for call in calls()] == ["ps --quiet --all", "logs"]


def test_pods_are_asked_by_kubectl(calls: Calls) -> None:
    assert command.main(["logs", "tech_research", "-f", "-n", "demo"]) == 0
    assert command.main(["logs", "-n", "demo"]) == 0
    one, every = calls()
    assert one.startswith("kubectl --namespace demo logs --selector=app.kubernetes.io/name=tech-research ")
    assert one.endswith(" --follow")
    assert "--selector=app.kubernetes.io/component " in every
    assert "--follow" not in every
