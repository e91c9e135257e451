"""The verbs and their options."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

from pallas_cli import arguments
from pallas_contract import names
from pallas_gen import cli as generator


@pytest.mark.parametrize("verb", arguments.MODULES)
def test_each_verb_has_a_line_and_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse([verb, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"example:\n  pallas {verb}" in text
    assert f"\n  {verb} " in arguments.summary()


def test_the_fleet_file_is_named_by_file_folder_or_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(names.ENV_AGENTS_CONFIG, raising=False)
    assert arguments.parse(["up"]).file == Path("agents.yaml")
    assert arguments.parse(["up", "-f", "b.yaml"]).file == Path("b.yaml")
    assert arguments.parse(["up", "--file", str(tmp_path)]).file == tmp_path / "agents.yaml"
    for verb in ("up", "status", "stop"):
        assert arguments.parse([verb, str(tmp_path)]).file == tmp_path / "agents.yaml"
        assert arguments.parse([verb, "b.yaml", "-f", "b.yaml"]).file == Path("b.yaml")
    monkeypatch.setenv(names.ENV_AGENTS_CONFIG, "c.yaml")
    assert arguments.parse(["up"]).file == Path("c.yaml")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add", "server", "x", "--url", "canary"], "argument --url: is no URL: write http://HOST:PORT/mcp, or https"),
        (["call", "a", "b", "--timeout", "soon"], "argument --timeout: 'soon' is no number of seconds, such as 30"),
        (["status", "--interval", "-1"], "argument --interval: '-1' is no number of seconds, such as 30"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_one_that_can(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse(words)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert says in err
    assert "canary" not in err


def test_two_fleet_files_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse(["up", "a.yaml", "-f", "b.yaml"])
    assert ended.value.code == 2
    assert "PATH is a.yaml, and -f is b.yaml: give one of the two" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("down", "`pallas stop` ends a fleet"),
        ("ps", "did you mean `status`?"),
        ("validate", "did you mean `pallas-gen validate`?"),
    ],
)
def test_words_of_other_tools_are_answered_with_the_verb(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments.parse([word, "--all"])
    assert ended.value.code == 2
    assert f"error: there is no verb `{word}`: {hint}" in capsys.readouterr().err


def test_the_verbs_of_pallas_gen_are_known() -> None:
    commands = get_command(generator.app).commands  # type: ignore[attr-defined]
    assert commands.keys() - arguments.MODULES.keys() <= arguments._HABITS.keys()
    assert set(arguments._OF_PALLAS_GEN) <= commands.keys()
