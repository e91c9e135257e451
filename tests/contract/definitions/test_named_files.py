"""Files that instructions and cards name, with their places."""

from __future__ import annotations

from pallas_contract.definitions import named_files
from pallas_contract.problems import Where

HERE = Where("a.py", 3, 5)


def test_what_an_instruction_includes() -> None:
    text = "{{file:a/../b.md}} {{file_silent:may.md}} \\{{file:text.md}} {{ file: spaced.md }}\n{{file: c.md }}"
    assert [(file.path, file.where) for file in named_files.included(text, HERE)] == [("b.md", HERE), ("c.md", HERE)]


def test_what_a_body_includes_has_its_own_line() -> None:
    body = "\nRead {{file:b.md}}\n{{file:c.md}}"
    places = [(file.path, str(file.where)) for file in named_files.included_in_body(body, "agents/x.md", 5)]
    assert places == [("b.md", "agents/x.md:6:6"), ("c.md", "agents/x.md:7:1")]


def test_a_history_starts_beside_its_card() -> None:
    assert named_files.history("../old.json", "agents/x.md", HERE).path == "old.json"
    assert named_files.instruction("./a.md", HERE).path == "a.md"
