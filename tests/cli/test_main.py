"""`pallas`: a verb is run, all else is the runtime's; what goes wrong is a line and an exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pallas_agent_runtime import cli as runtime
from pallas_cli import main as command
from pallas_cli.project import init
from pallas_cli.trouble import Trouble
from pallas_service import compiled_texts


@pytest.mark.parametrize("words", [[], ["--check"], ["--agent", "a"], ["--config", "x.yaml"]])
def test_what_begins_with_no_verb_is_the_runtimes(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(runtime, "main", lambda arguments, verbs: calls.append(arguments) or 7)
    assert command.main(words) == 7
    assert calls == [words]


def test_a_verb_that_is_none_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["frobnicate"])
    assert ended.value.code == 2
    assert "there is no `frobnicate`: choose from init, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "nearest"), [(["statsu"], "status"), (["add", "agnet"], "agent"), (["--chek"], "--check")]
)
def test_a_mistyped_verb_is_answered_with_the_nearest(
    words: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert f"did you mean `{nearest}`?" in capsys.readouterr().err


def test_help_names_the_verbs_and_the_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents.yaml").write_text("name: demo\nagents:\n  jarvis: {module: agents.jarvis, port: 8201}\n")
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "\n  init " in text
    assert "agents.yaml is the fleet demo, with the agents jarvis." in text


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [(Trouble("no way"), 1, "pallas init: no way\n"), (KeyboardInterrupt(), 130, "")],
)
def test_what_ends_a_verb_is_a_line_and_a_code(
    error: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(init, "run", fail)
    assert command.main(["init"]) == code
    assert capsys.readouterr().err == line


def test_the_world_ends_a_verb_with_the_file_it_is_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert command.main(["init", str(tmp_path / "file" / "desk")]) == 1
    assert capsys.readouterr().err == f"pallas init: {tmp_path / 'file' / 'desk'}: not a directory\n"


def test_a_package_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("pallas_cli.talk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert command.main(["call", "desk", "hi"]) == 2
    line = "pallas call: needs the extra `agent` (not installed: httpx2): pip install 'pallas-kit[agent]'\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(("verb", "looks_up"), [("logs", True), ("stop", True), ("completion", False)])
def test_a_verb_that_imports_packages_looks_up_what_they_compile(
    verb: str, looks_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(command, "_imported", calls.append)
    monkeypatch.setattr(command, "_run", lambda verb, options: 7)
    monkeypatch.setattr(compiled_texts, "begin", lambda: calls.append("begin"))
    monkeypatch.setattr(compiled_texts, "end", lambda: calls.append("end"))
    assert command.main([verb, *(["bash"] if verb == "completion" else [])]) == 7
    assert calls == (["begin", verb, "end"] if looks_up else [verb])


def test_a_reader_that_has_gone_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(init, "run", fail)
    assert command.main(["init"]) == 1
