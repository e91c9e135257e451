"""`pallas-testing conformance`: exit codes 0, 1 and 2, and what is printed where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_testing import cli
from pallas_testing.conformance import official
from pallas_testing.conformance import run as run_module
from pallas_testing.conformance.run import Question, Report
from tests.documentation import blocks, commands

from .breakable import REPLY, TURN, Agent, Hosts, Registry

AGENT = "http://agent.example/mcp"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The questions that the command asks a made-up network: `agent`, `broken`, `registry`."""
    questions: list[Question] = []
    network = {"agent": Agent().app, "broken": Agent(frozenset({"prose"})).app, "registry": Registry().app}
    check = run_module.check

    async def checked(question: Question) -> Report:
        questions.append(question)
        return await check(question, transport=Hosts(**network))

    monkeypatch.setattr(run_module, "check", checked)
    return questions


def test_what_keeps_the_contract_ends_with_0(asked: list[Question], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conformance", AGENT]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"agent {AGENT}"
    assert cli.main(["conformance", "http://registry.example"]) == 0
    assert asked[0].turn is None


def test_the_commands_of_the_page_are_answered(asked: list[Question], capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks.of("conformance")
    text = block.text.replace("http://127.0.0.1:24101/mcp", AGENT)
    lines = commands.simple(text.replace("http://127.0.0.1:24100", "http://registry.example"))
    ends = [(cli.main(words[1:]), capsys.readouterr().out.splitlines()[0]) for words in lines]
    first = ["registry http://registry.example", f"agent {AGENT}", f"agent {AGENT}", "<?xml "]
    assert [(code, line[: len(start)]) for (code, line), start in zip(ends, first, strict=True)] == [
        (0, start) for start in first
    ]
    assert asked[2].turn is not None
    assert asked[3].eras == ["2025-11-25", "2026-07-28"]


def test_what_breaks_it_ends_with_1(asked: list[Question], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("planted\n")
    options = ["--message", TURN.message, "--reply", REPLY, "--era", "modern", "--token-file", str(tmp_path / "token")]
    assert cli.main(["conformance", "http://broken.example/mcp", *options, "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["id"] for finding in findings if finding["verdict"] == "broken"} == {"turn.format"}
    assert (asked[0].turn, asked[0].token, asked[0].eras) == (TURN, "planted", ["2026-07-28"])


def test_nobody_there_ends_with_1(asked: list[Question], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conformance", "http://nobody.example"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("pallas-testing conformance: http://nobody.example: neither a registry nor an agent")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agent.example"], "agent.example: must be a URL\n    such as http://"),
        (["http://["], "http://[: must be a URL\n"),
        (["http://a:99999/mcp"], "http://a:99999/mcp: must be a URL\n"),
        (["http://me:planted@a/mcp"], "a: must be a URL without user and password\n    use --token-file\n"),
        ([AGENT, "--reply", "x"], "--reply: is the answer to --message\n    give both\n"),
        ([AGENT, "--timeout", "nan"], "--timeout: must be seconds above 0\n"),
        ([AGENT, "--token-file", "/none"], "--token-file /none: No such file or directory\n"),
        (
            [AGENT, "--official", "--token-file", "/dev/null"],
            "--official with --token-file: the official suite sends no token\n    give one of them\n",
        ),
        (
            [AGENT, "--official", "--kind", "registry"],
            "--official: judges MCP servers, and a registry need not be one\n",
        ),
    ],
)
def test_bad_input_ends_with_2(
    asked: list[Question], capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(["conformance", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"pallas-testing conformance: {message}")
    assert asked == []


def test_all_problems_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conformance", "x", "--reply", "y", "--timeout", "0"]) == 2
    assert capsys.readouterr().err.count("pallas-testing conformance: ") == 3


def test_the_official_suite_is_asked_in_the_eras_that_are_spoken(
    asked: list[Question], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    monkeypatch.setattr(official, "command", lambda: ["suite"])
    monkeypatch.setattr(official, "run", lambda *call: calls.append(call) or [])
    assert cli.main(["conformance", AGENT, "--official"]) == 0
    assert calls == [(AGENT, ["suite"], ["2025-11-25", "2026-07-28"])]
    assert cli.main(["conformance", "http://registry.example", "--official"]) == 2
    assert "--official: judges MCP servers" in capsys.readouterr().err


def test_a_suite_that_is_missing_is_told_in_one_line(
    asked: list[Question], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CONFORMANCE_DIR", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(["conformance", AGENT, "--official"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert asked == []
