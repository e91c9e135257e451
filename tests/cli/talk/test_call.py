"""`pallas call`: the answer on stdout, the progress on stderr, the code by how it ended."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pallas_cli import main as command
from pallas_cli.talk import client
from tests.cli.conftest import TOKEN, Stand
from tests.problem_lines import without_codes


def test_the_answer_is_on_stdout_and_the_progress_on_stderr(
    stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["call", "desk", "good morning"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "heard good morning\n"
    assert printed.err == "  desk step 1 (llm)\n  desk step 2\\x1b[31m\n"
    assert stand.calls == [{"message": "good morning", "images": None, "session": None}]


def test_a_url_needs_no_registry(stand: Stand, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["call", f"{stand.url}/mcp", "hi", "-f", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "heard hi\n"


def test_json_is_one_object(stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["call", "desk", "fail", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document.pop("text").endswith("the desk is closed")
    progress = ["desk step 1 (llm)", "desk step 2\x1b[31m"]
    assert document == {"agent": "desk", "url": f"{stand.url}/mcp", "error": True, "progress": progress}


def test_an_error_of_the_agent_is_no_answer(stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["call", "desk", "fail"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("the desk is closed\n")


def test_images_the_session_and_a_message_from_a_pipe_go_along(
    stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.png").write_bytes(b"\x89PNG")
    (project / "b.JPG").write_bytes(b"\xff")
    monkeypatch.setattr("sys.stdin", io.StringIO("what is this?\n"))
    arguments = ["call", "desk", "-", "--image", "a.png", "--image", "b.JPG", "--session", "mine"]
    assert command.main(arguments) == 0
    images = [{"data": "iVBORw==", "mime_type": "image/png"}, {"data": "/w==", "mime_type": "image/jpeg"}]
    assert stand.calls == [{"message": "what is this?", "images": images, "session": "mine"}]


@pytest.mark.parametrize("way", ["file", "variable"])
def test_a_token_comes_from_a_file_or_the_environment_and_is_never_shown(
    way: str, stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand.token = TOKEN
    assert command.main(["call", "desk", "hi"]) == 1
    refused = capsys.readouterr().err
    assert refused == f"pallas call: {stand.url}/mcp: it asks for a token: --token-file FILE, or $PALLAS_TOKEN\n"
    (project / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("PALLAS_TOKEN", TOKEN if way == "variable" else "wrong")
    options = ["--token-file", "token"] if way == "file" else []
    assert command.main(["call", "desk", "hi", "--json", *options]) == 0
    printed = capsys.readouterr()
    assert "canary" not in printed.out + printed.err


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "it does not accept the token in {}: see that"),
        (403, "the token in {} does not allow this: see the scopes"),
    ],
)
@pytest.mark.parametrize("verb", ["call", "chat"])
def test_a_token_that_is_refused_is_named_by_where_it_is_from(
    verb: str, status: int, words: str, stand: Stand, project: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand.token = TOKEN
    stand.refusal = status
    monkeypatch.setattr("sys.stdin", io.StringIO("hi\n"))
    (project / "bad.token").write_text("canary-that-is-wrong\n")
    for source, options in {"bad.token": ["--token-file", "bad.token"], "$PALLAS_TOKEN": []}.items():
        if not options:
            monkeypatch.setenv("PALLAS_TOKEN", "canary-that-is-wrong")
            monkeypatch.setattr("sys.stdin", io.StringIO("hi\n"))
        question = ["hi"] if verb == "call" else []
        assert command.main([verb, "desk", *question, *options]) == (verb == "call")
        printed = capsys.readouterr()
        assert words.format(source) in printed.err
        assert "canary" not in printed.out + printed.err


def test_a_name_that_is_none_is_refused_with_one_that_is(
    stand: Stand, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand.states["tech-research"] = {"status": "ok"}
    assert command.main(["call", "tech_reserch", "hi"]) == 2
    registry = f"http://127.0.0.1:{stand.url.rpartition(':')[2]}"
    line = f"tech_reserch: the registry at {registry} has no agent of this name\n"
    assert without_codes(capsys.readouterr().err) == f"{line}    did you mean `tech-research`?\n"
    assert command.main(["call", "xyz", "hi"]) == 2
    assert "    the registry has desk, tech-research\n" in without_codes(capsys.readouterr().err)


@pytest.mark.parametrize("verb", [["call", "desk", "hi"], ["chat", "desk"]])
def test_an_agent_without_an_address_is_refused_and_its_inner_one_not_asked(
    verb: list[str], stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(*_: object, **__: object) -> None:
        pytest.fail("somebody is asked, and shown the token")

    stand.published = False
    monkeypatch.setattr(client, "ask", ask)
    monkeypatch.setattr("sys.stdin", io.StringIO("hi\n"))
    assert command.main(verb) == 2
    line, _, remedy = without_codes(capsys.readouterr().err).partition("\n")
    assert line == "desk: publishes no address"
    assert remedy.startswith("    publish it (`publish: true` in agents.yaml")


def test_nobody_there_is_trouble_in_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["call", "http://127.0.0.1:9/mcp", "hi"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pallas call: http://127.0.0.1:9/mcp: ")
    assert error.count("\n") == 1
