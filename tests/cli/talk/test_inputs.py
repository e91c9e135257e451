"""Images and tokens: what is wrong with them is said before anybody is asked."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pallas_agent_runtime.calls import arguments
from pallas_cli import main as command
from pallas_cli.talk import inputs
from pallas_cli.talk.inputs import Token
from pallas_contract import names
from pallas_contract.problems import Refused
from tests.cli.conftest import Stand
from tests.problem_lines import without_codes


def test_the_types_are_those_that_agents_take() -> None:
    assert set(inputs.MIME_TYPES) == set(arguments.MIME_TYPES)


@pytest.mark.parametrize("verb", [["call", "desk", "-"], ["chat", "desk"]])
def test_input_that_is_no_text_is_refused(
    verb: list[str], stand: Stand, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n"), "utf-8"))
    assert command.main(verb) == 2
    assert "standard input: is no text in utf-8\n    convert it: " in without_codes(capsys.readouterr().err)
    assert stand.calls == []


def test_all_images_that_are_wrong_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        inputs.images([tmp_path / "no.png", Path("a.txt"), Path("b")])
    assert without_codes(str(refused.value)) == (
        f"{tmp_path}/no.png: cannot be read: no such file or directory\n"
        "a.txt: is no image that agents take\n    by its suffix: png, jpeg, gif, webp\n"
        "b: is no image that agents take\n    by its suffix: png, jpeg, gif, webp"
    )


@pytest.mark.parametrize("text", ["", " \n", "two\nlines", "ключ"])
def test_what_is_no_token_is_refused_and_not_shown(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(Refused) as refused:
        inputs.token(file)
    assert without_codes(str(refused.value)) == f"{file}: holds no token: one line of ASCII"


def test_a_token_is_the_files_else_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(names.ENV_TOKEN, raising=False)
    assert inputs.token(None) is None
    monkeypatch.setenv(names.ENV_TOKEN, "abc ")
    assert inputs.token(None) == Token("abc", "$PALLAS_TOKEN")
    (tmp_path / "token").write_text("def\n")
    assert inputs.token(tmp_path / "token") == Token("def", f"{tmp_path}/token")
    with pytest.raises(Refused, match="cannot be read: no such file"):
        inputs.token(tmp_path / "none")
