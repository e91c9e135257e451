"""Values in a syntax tree that can be known without running it."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from pallas_contract.definitions import literals


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a' + 'b'", "ab"),
        ("['a'] + ['b']", ["a", "b"]),
        ("['a'] + 'b'", None),
        ("[*NAMES, 'c']", ["a", "c"]),
        ("[*OTHER]", [None]),
        ("NAMES[0]", None),
        ("ONCE", "x"),
        ("TWICE", None),
    ],
)
def test_values(text: str, expected: Any) -> None:
    tree = ast.parse("NAMES = ['a']\nONCE = 'x'\nTWICE = 'y'\ndef f():\n    global TWICE\n    TWICE = 'z'\n")
    assert literals.value(ast.parse(text, mode="eval").body, literals.constants(tree)) == expected


def test_texts_are_a_list_of_nothing_but_texts() -> None:
    assert literals.texts(["a", "b"]) == ("a", "b")
    assert literals.texts(()) == ()
    assert [literals.texts(value) for value in ("a", ["a", 1], None, 7)] == [None] * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Path('a.md')", "a.md"),
        ("pathlib.Path('a', 'b.md')", "a/b.md"),
        ("Path('a') / 'b' / NAME", "a/b/x.md"),
        ("HERE / 'b.md'", "agents/b.md"),
        ("Path(__file__).with_name('b.md')", "agents/b.md"),
        ("Path(__file__).resolve().parent.parent / 'b.md'", "b.md"),
        ("Path(__file__).parent.joinpath('b', 'c.md')", "agents/b/c.md"),
        ("Path(__file__).parent.parent.parent / 'b.md'", "../b.md"),
        ("Path('/etc') / 'b'", "/etc/b"),
        ("Path(folder) / 'b'", None),
        ("Path('a') / name", None),
        ("Path.cwd() / 'a'", None),
        ("Path('a').read_text()", None),
        ("'a.md'", None),
        ("LOOP / 'a'", None),
    ],
)
def test_paths(text: str, expected: str | None) -> None:
    tree = ast.parse("HERE = Path(__file__).parent\nNAME = 'x.md'\nLOOP = LOOP / 'b'\n")
    node = ast.parse(text, mode="eval").body
    assert literals.path(node, literals.constants(tree), "agents/scout.py") == expected
