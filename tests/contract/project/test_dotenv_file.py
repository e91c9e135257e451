"""Names in `.env`, and its lines that set nothing."""

from __future__ import annotations

from pathlib import Path

from pallas_contract import limited_file
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


def test_a_file_that_agents_would_refuse_for_its_size(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1\n" + "#" * limited_file.LARGEST)
    assert dotenv_file.keys(path) == set()
    assert [str(problem) for problem in dotenv_file.problems(path)] == [
        ".env: cannot be read: larger than 1 MiB [PAL001]"
    ]


def test_no_file(tmp_path: Path) -> None:
    assert dotenv_file.keys(tmp_path / ".env") == set()
    assert list(dotenv_file.problems(tmp_path / ".env")) == []
