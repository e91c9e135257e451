"""The program of the build, with stand-ins for pip and npm; tests/e2e/test_baked.py runs it with the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_gen.dependencies import bake


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Return pip's arguments and the text of the requirements file, of each call."""
    calls = []

    def record(python: str | Path, *arguments: str | Path) -> None:
        words = [str(argument) for argument in arguments]
        calls.append((words[:-1], Path(words[-1]).read_text() if "-r" in words else words[-1]))

    monkeypatch.setattr(bake, "pip", record)
    return calls


def test_a_lock_is_installed_as_it_is_but_for_what_is_there(pip, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("--index-url https://h\nPyYAML==1 --hash=sha256:aa\nnot-here==2 --hash=sha256:bb\n")
    bake.main("requirements", path)
    ((arguments, text),) = pip
    assert arguments[:2] == ["--no-deps", "--require-hashes"]
    assert text == "not-here==2 --hash=sha256:bb\n"


def test_loose_requirements_are_held_to_what_is_there(pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constraints = []
    monkeypatch.setattr(bake, "pip", lambda _, *words: constraints.append(Path(words[1]).read_text()))
    path = tmp_path / "requirements.txt"
    path.write_text("six\n")
    bake.main("requirements", path)
    assert "\npyyaml==" in constraints[0]


def test_the_program_of_an_npm_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(*command: object, **_: object) -> None:
        package = tmp_path / "0" / "node_modules" / "@s" / "n"
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps({"bin": {"mcp-n": "dist/index.js"}}))

    monkeypatch.setattr(bake, "run", install)
    entry = {"specifier": "@s/n@1", "name": "@s/n", "program": "", "extra": []}
    command = bake._npm_server(tmp_path / "0", entry)
    assert command == ["/opt/servers/bin/node", str(tmp_path / "0" / "node_modules" / "@s" / "n" / "dist" / "index.js")]


def test_a_program_that_is_not_there_ends_the_build_with_those_that_are(pip, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bake, "run", lambda *_: (tmp_path / "bin").mkdir())
    entry = {"specifier": "a", "name": "a", "program": "b", "extra": []}
    with pytest.raises(SystemExit) as ended:
        bake._python_server(tmp_path, entry)
    assert ended.value.code == "bake: a has no program b: "


def test_a_command_that_fails_ends_the_build() -> None:
    with pytest.raises(SystemExit) as ended:
        bake.run("false")
    assert ended.value.code == "bake: this failed: false"
