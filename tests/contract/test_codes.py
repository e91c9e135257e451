"""Stable codes: each is given by the source, and has its section in docs/problems.md; the other way round too."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pallas_contract.codes import Code

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("cli", "contract", "generator", "services") for path in (ROOT / folder).rglob("*.py")]
_SECTION = re.compile(r"^### (PAL\d{3}) ([a-z0-9-]+)\n(.+)", re.MULTILINE)


def sections() -> list[tuple[str, str]]:
    """Return code and title of each section of the page; a heading without text is none."""
    text = (ROOT / "docs" / "problems.md").read_text("utf-8")
    assert text.count("\n### ") == len(_SECTION.findall(text))
    return [(code, title) for code, title, _ in _SECTION.findall(text)]


def given() -> set[str]:
    """Return the names of the codes that the source gives."""
    names = set()
    for path in SOURCES:
        text = path.read_text("utf-8")
        if "Code." in text:
            nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))
            names |= {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "Code"}
    return names


def test_each_code_has_a_section_with_its_title_and_each_section_a_code() -> None:
    assert sections() == [(str(code), code.label) for code in Code]


def test_each_code_is_given_by_the_source() -> None:
    assert given() & set(Code.__members__) == set(Code.__members__)


def test_codes_are_in_order_and_of_one_form() -> None:
    """So a new one is not put on a number that a former one had."""
    assert list(Code) == sorted(Code)
    assert [code for code in Code if not re.fullmatch(r"PAL\d{3}", code)] == []
