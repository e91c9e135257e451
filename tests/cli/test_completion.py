"""What a shell is told: verbs, options, their values, names of the fleet; nothing where a path is to be typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pallas_cli import arguments, completion, main

FLEET = "name: x\nagents: {my_scout: {card: a.md, port: 8101}, other: {}}\nservices: {tides: {}}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PALLAS_AGENTS_CONFIG", raising=False)
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "broken.yaml").write_text("agents: [")
    (tmp_path / "list.yaml").write_text("agents: [a]")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", sorted(arguments.MODULES)),
        ("st", ["status", "stop"]),
        ("nonsense ", sorted(arguments.MODULES)),
        ("add ", ["agent", "server", "service"]),
        ("add agent scout --ca", ["--card"]),
        ("up --w", ["--watch"]),
        ("up --watch --", ["--allow-plain-secrets", "--console", "--file", "--help", "--quiet", "--verbose"]),
        ("init --example ", sorted(arguments.EXAMPLES)),
        ("init --example p", ["pallas", "percolate"]),
        ("status --format ", ["json", "text"]),
        ("call ", ["my-scout", "other"]),
        ("call --timeout 5 m", ["my-scout"]),
        ("call --json o", ["other"]),
        ("call my-scout ", []),
        ("call a b --image x --im", ["--image"]),
        ("call -f broken.yaml ", []),
        ("call -f list.yaml ", []),
        ("call -f nowhere.yaml ", []),
        ("logs ", ["my-scout", "other", "registry", "tides"]),
        ("logs -f t", ["tides"]),
        ("logs --file nowhere.yaml ", ["registry"]),
        ("up -f ", []),
        ("up ", []),
        ("completion ", ["bash", "fish", "zsh"]),
        ("completion --w", []),
        ("--che", ["--check"]),
        ("--check --format s", ["sarif"]),
    ],
)
def test_words_fit(line: str, expected: list[str]) -> None:
    *before, current = line.split(" ")
    assert completion.words(before, current) == expected


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_each_shell_has_a_script_that_asks(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(completion.SCRIPTS) == arguments.SHELLS
    assert main.main(["completion", shell]) == 0
    assert "pallas completion --words " in capsys.readouterr().out


def test_without_a_shell_they_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["completion"]) == 2
    assert capsys.readouterr().err == "pallas completion: name a shell: bash, zsh, fish\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "pallas", "sta"], "status\n"),
        (["2", "pallas", "up", "--watch"], "--watch\n"),
        (["1", "pallas"], "".join(f"{verb}\n" for verb in sorted(arguments.MODULES))),
        (["9", "pallas"], "".join(f"{verb}\n" for verb in sorted(arguments.MODULES))),
        (["x"], "".join(f"{verb}\n" for verb in sorted(arguments.MODULES))),
    ],
)
def test_the_word_at_the_cursor_is_completed(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["completion", "--words", *words]) == 0
    assert capsys.readouterr().out == expected


def test_bash_completes(here: Path) -> None:
    """By the real shell, with the words of the line as it hands them over."""
    program = here / "pallas"
    start = "import sys; from pallas_cli.main import main; sys.exit(main())"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -c "{start}" "$@"\n')
    program.chmod(0o755)
    line = "COMP_WORDS=(pallas call m); COMP_CWORD=2; _pallas; printf '%s\\n' \"${COMPREPLY[@]}\""
    script = completion.SCRIPTS["bash"] + line
    environ = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "my-scout\n"
