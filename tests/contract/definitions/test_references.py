"""Paths that code or a card may name."""

from __future__ import annotations

import ast

import pytest

from pallas_contract.definitions import card, references


@pytest.mark.parametrize(
    ("code", "paths"),
    [
        ("x = 'prompts/a.md'", {"prompts/a.md"}),
        ("'Read this.\\n{{file:a.md}} {{file_silent: b.md }}'", {"a.md", "b.md"}),
        ("'{{file:a.md}}'", {"a.md"}),
        ("Path(__file__).parent / 'data' / 'a.csv'", {"data", "a.csv", "data/a.csv"}),
        ("Path(root, 'data', 'a.csv')", {"data", "a.csv", "data/a.csv"}),
        ("f('a.csv', x)", {"a.csv"}),
        ("f(tools=['own/tools.py:add'])", {"own/tools.py:add", "own/tools.py"}),
        ("'x' * 3 + '" + "y" * 300 + "'", {"x"}),
    ],
)
def test_in_a_module(code: str, paths: set[str]) -> None:
    assert set(references.in_module(ast.parse(code))) == paths


def test_folders_in_a_module() -> None:
    tree = ast.parse("f(skills=['s', Path('t')])\nfast.load_agents('cards')\nload('x')")
    assert set(references.folders_in_module(tree)) == {"s", "t", "cards"}


def test_in_a_card() -> None:
    text = "---\nfunction_tools: ['tools.py:add']\nmessages: h.md\nskills: [s]\n---\nYou {{file:a.md}}\n"
    made = card.parse(text, name="c.md")
    assert set(references.in_card(made)) == {"a.md", "tools.py:add", "tools.py", "h.md", "s"}
    assert set(references.folders_in_card(made)) == {"s"}


def test_paths_that_may_be_folders_are_read() -> None:
    tree = ast.parse("Path('a', 'b')\nhere / 'c' / 'd'\nos.listdir('e')\nPath(x)\nprint('f')\nx = 'g'\nhere / 1")
    assert sorted(references.folders_read(tree)) == ["a/b", "c", "c/d", "e"]
