"""`pallas chat`: a line in, an answer out, in one conversation that nobody can guess."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pallas_cli import main as command
from tests.cli.conftest import Stand


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_all_lines_are_one_conversation(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\nfail\ntwo"))
    assert command.main(["chat", "desk"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "heard one\nheard two\n"
    assert "the desk is closed\n" in printed.err
    assert "> " not in printed.err
    assert [call["message"] for call in stand.calls] == ["one", "fail", "two"]
    (session,) = {call["session"] for call in stand.calls}
    assert len(session) == 32


def test_a_terminal_has_a_prompt_and_a_session_may_go_on(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("one\n"))
    assert command.main(["chat", "desk", "--session", "ours"]) == 0
    assert capsys.readouterr().err.count("> ") == 2
    assert [call["session"] for call in stand.calls] == ["ours"]


def test_a_conversation_outlives_an_agent_that_does_not_answer(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand.token = "some"
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    assert command.main(["chat", "desk"]) == 0
    assert capsys.readouterr().err.count("it asks for a token") == 2
