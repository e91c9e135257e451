"""Tools that a command runs: what is seen of them on a terminal and elsewhere."""

from __future__ import annotations

import sys

import pytest

from pallas_gen.commands import tool

FAILING = ["sh", "-c", "echo told; exit 3"]


def test_elsewhere_a_failure_brings_its_output_and_a_success_none(capfd) -> None:
    with pytest.raises(tool.ToolFailed) as failed:
        tool.run(FAILING)
    tool.run(["echo", "done"])
    assert (str(failed.value), capfd.readouterr().out) == ("told", "")


def test_on_a_terminal_it_shows_itself_and_a_failure_repeats_nothing(capfd, monkeypatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(tool.ToolFailed) as failed:
        tool.run(FAILING)
    assert (str(failed.value), capfd.readouterr().out.split()) == ("", ["told"])
    assert failed.value.output.split() == ["told"], "for who looks into it"


def test_a_tool_on_a_terminal_draws_for_one(capfd, monkeypatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    tool.run(["sh", "-c", "test -t 1 && test -t 2 && printf '\\033[1mdrawn'"])
    assert capfd.readouterr().out == "\033[1mdrawn"
