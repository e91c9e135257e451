"""An entry more in a file that somebody has written: the rest of its text is what it was."""

from __future__ import annotations

import difflib

import pytest
import yaml

from pallas_cli.project import insertion

ENTRY = {"module": "agents.x", "port": 3, "depends_on": ["model"]}
BLOCK = ["  x:", "    module: agents.x", "    port: 3", "    depends_on: [model]"]
FLOW = "x: {module: agents.x, port: 3, depends_on: [model]}"


def added(before: str, after: str) -> list[str]:
    """Return the lines that came; none may have gone."""
    diff = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert [line for line in diff if line[0] == "-"] == []
    return [line[2:] for line in diff]


@pytest.mark.parametrize(
    "text",
    [
        "agents:\n  a: {port: 1}\nname: n\n",
        "agents:\n  a:\n    port: 1\n    # more of a\nname: n\n",
        "agents:\n  a:\n    port: 1   # a comment\n\n# of the registry\nname: n\n",
        "agents:\n  a: {port: 1}",
        "agents:\n  a:\n    text: |\n      one\n\n      two\n\nname: n\n",
        "agents:\n  a:\n    env:\n      - one\n      - two\nname: n\n",
        "b: &b {port: 1}\nagents:\n  a: *b\nname: n\n",
        "agents:\n  # nobody yet\n  a:\nname: n\n",
        "agents:\nname: n\n",
        "name: n\nagents:",
    ],
)
def test_in_block_style_it_is_the_last_entry(text: str) -> None:
    changed = insertion.insert(text, ["agents"], "x", ENTRY)
    assert added(text, changed) == BLOCK
    assert changed.endswith("\n")
    assert yaml.safe_load(changed)["agents"]["x"] == ENTRY


def test_a_comment_of_the_last_entry_stays_with_it_and_one_of_the_next_too() -> None:
    text = "agents:\n  a:\n    port: 1\n\n    # of a\n  # of nobody\nname: n\n"
    changed = insertion.insert(text, ["agents"], "x", {"port": 3})
    assert changed == "agents:\n  a:\n    port: 1\n\n    # of a\n  x:\n    port: 3\n  # of nobody\nname: n\n"


def test_entries_that_are_apart_stay_apart() -> None:
    text = "agents:\n    a:\n        port: 1\n\n    b:\n        port: 2\n\nname: n\n"
    expected = text.replace("port: 2\n", "port: 2\n\n    x:\n      port: 3\n")
    assert insertion.insert(text, ["agents"], "x", {"port": 3}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agents: {a: {port: 1}}\n", f"agents: {{a: {{port: 1}}, {FLOW}}}\n"),
        ("agents: {}\nname: n\n", f"agents: {{{FLOW}}}\nname: n\n"),
        ("agents: {\n  a: {port: 1},  # one\n}\n", f"agents: {{\n  a: {{port: 1}}, {FLOW},  # one\n}}\n"),
        ("{name: n, agents: {a: 1}}", f"{{name: n, agents: {{a: 1, {FLOW}}}}}"),
    ],
)
def test_in_flow_style_it_is_the_last_entry(text: str, expected: str) -> None:
    assert insertion.insert(text, ["agents"], "x", ENTRY) == expected


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("name: n\n", ["mcp:", "  servers:", "    x:", "      url: u"]),
        ("mcp:\n  other: 1\nname: n\n", ["  servers:", "    x:", "      url: u"]),
        ("mcp:\nname: n\n", ["  servers:", "    x:", "      url: u"]),
        ("# only this\nname: n", ["mcp:", "  servers:", "    x:", "      url: u"]),
    ],
)
def test_what_is_missing_above_it_is_made(text: str, lines: list[str]) -> None:
    changed = insertion.insert(text, ["mcp", "servers"], "x", {"url": "u"})
    assert added(text, changed) == lines


def test_lines_end_as_the_others_do() -> None:
    changed = insertion.insert("agents:\r\n  a:\r\n    port: 1\r\n", ["agents"], "x", {"port": 3})
    assert changed == "agents:\r\n  a:\r\n    port: 1\r\n  x:\r\n    port: 3\r\n"


@pytest.mark.parametrize(
    "text",
    [
        "agents: [a]\n",
        "agents: text\n",
        "agents: null\n",
        "b: &b\n  a: {port: 1}\nagents: *b\n",
        "- a\n",
        "",
        "agents: {\n",
        "agents:\n  x: {port: 1}\n  x: {port: 2}\n",
    ],
)
def test_where_no_place_is_found_the_text_is_nobodys_to_change(text: str) -> None:
    with pytest.raises(insertion.NoPlace):
        insertion.insert(text, ["agents"], "x", ENTRY)


@pytest.mark.parametrize("value", ["yes", "1:30", "a: b", "#", "мой", "* x", "", "a\nb"])
def test_a_text_is_read_back_as_it_is(value: str) -> None:
    for text in ("agents:\n  a: 1\n", "agents: {a: 1}\n"):
        changed = insertion.insert(text, ["agents"], "x", {"text": value, "list": [value]})
        assert yaml.safe_load(changed)["agents"]["x"] == {"text": value, "list": [value]}
