"""A script that is wrong is told with file, line, column, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_testing.model import BadFile, Script
from pallas_testing.model.reader import parse, read


def problems(text: str) -> list[str]:
    with pytest.raises(BadFile) as raised:
        parse(text, "s.yaml").check(Script)
    return raised.value.problems


def test_all_problems_come_in_one_run_with_their_places() -> None:
    text = """\
agents:
  harper:
    instruction: You are Harper
    rules:
      - says: hello
      - user: "("
        say: hello
      - say: hello
        error: {status: 200}
      - images: some
        say: x
  nobody:
    rules: [{say: x}]
rulez: []
"""
    assert problems(text) == [
        "s.yaml:5:9 agents.harper.rules.0.says: is no key that is known here\n    did you mean `say`?",
        "s.yaml:6:9 agents.harper.rules.1.user: must be a regular expression: missing ), unterminated subpattern at "
        "position 0",
        "s.yaml:9:17 agents.harper.rules.2.error.status: Input should be greater than or equal to 400",
        "s.yaml:10:9 agents.harper.rules.3.images: Input should be a valid integer",
        "s.yaml:10:9 agents.harper.rules.3.images: Input should be a valid list",
        "s.yaml:12:3 agents.nobody: needs `instruction` or `model`, by which its calls are known",
        "s.yaml:14:1 rulez: is no key that is known here\n    did you mean `rules`?",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules:\n  - {say: a, hang: true}\n", "s.yaml:2:5 rules.0: needs an answer"),
        ("rules:\n  - user: a\n", "s.yaml:2:5 rules.0: needs an answer"),
        ("rules:\n  - {say: a, json: 1}\n", "s.yaml:2:5 rules.0: has `say` and `json`"),
        ("rules:\n  - {hang: true, per_token: 1}\n", "s.yaml:2:5 rules.0: `per_token` and `cut_after` need"),
        ("rules:\n  - call: [{}]\n", "s.yaml:2:12 rules.0.call.0.tool: is missing"),
        ("rules:\n  - error: {state: 1}\n", "s.yaml:2:13 rules.0.error.state: is no key that is known here\n    did"),
        ("rules:\n  - call: [{tool: a, if_absent: x}]\n", "s.yaml:2:22 rules.0.call.0.if_absent: is no key that is"),
        ("rules: [a: b: c]", "s.yaml:1:13: broken YAML: expected ',' or ']', but got ':'\n    strings with ':'"),
        ("rules: []\nrules: []\n", "s.yaml:2:1 rules: this key is given twice\n    remove one of the two"),
        ("rules: [{say: x, on: 1}]\n", "s.yaml:1:18 rules.0.on: keys must be text\n    YAML reads"),
        ("- say: x\n", "s.yaml:1:1: must be a mapping of keys"),
        ("", "s.yaml:1:1: must be a mapping of keys"),
    ],
)
def test_each_problem_has_its_place(text: str, problem: str) -> None:
    assert any(entry.startswith(problem) for entry in problems(text)), problems(text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"^none.yaml: no such file\n    looked in"):
        read(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff")
    with pytest.raises(BadFile, match=r"bytes.yaml: is not UTF-8 text \(byte 3\)"):
        read(tmp_path / "bytes.yaml")
    with pytest.raises(BadFile, match="cannot be read"):
        read(tmp_path)
