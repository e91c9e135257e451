"""Names in `.env`, and its lines that set nothing."""

from __future__ import annotations

from pathlib import Path

from pallas_contract.project import dotenv_file
from tests.problem_lines import without_codes

TEXT = """\
# A comment, and an empty line.

export A=1
B = "x = y"
FOO
KEY="-----BEGIN
no end yet
-----END"
C='a
b'
two words
"""


def test_names_and_dead_lines(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(TEXT)
    assert dotenv_file.keys(path) == {"A", "B", "KEY", "C"}
    assert [without_codes(str(problem)) for problem in dotenv_file.problems(path)] == [
        "warning: .env:5:1: sets nothing: there is no `=`\n    write `FOO=value`, or remove it",
        "warning: .env:11:1: sets nothing: there is no `=`\n    write `NAME=value`, or remove it",
    ]


def test_no_file(tmp_path: Path) -> None:
    assert dotenv_file.keys(tmp_path / ".env") == set()
    assert list(dotenv_file.problems(tmp_path / ".env")) == []
