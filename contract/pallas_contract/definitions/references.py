"""Paths that code or a card may name: literals, and what instructions include. Pure; most of them are no files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_contract.definitions.card import Card
from pallas_contract.definitions.module import LOADERS
from pallas_contract.definitions.tree import nodes

_INCLUDED = re.compile(r"\{\{\s*file(?:_silent)?:([^}]+)\}\}")
_LONGEST = 255
_PATHS = frozenset({"Path", "PurePath", "listdir", "scandir", "walk"})
"""Functions whose argument is a path."""


def in_module(tree: ast.Module) -> Iterator[str]:
    """Yield literals, also joined as paths are: `folder / "data" / "a.csv"`, `Path("data", "a.csv")`."""
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_text(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield from _joined(list(_divided(node)))
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            yield from _joined(list(node.args))


def folders_in_module(tree: ast.Module) -> Iterator[str]:
    """Yield paths that may be folders and are meant whole: `skills=`, and what `load_agents` gets."""
    for node in nodes(tree):
        if not isinstance(node, ast.Call):
            continue
        named = [keyword.value for keyword in node.keywords if keyword.arg == "skills"]
        if isinstance(node.func, ast.Attribute) and node.func.attr in LOADERS:
            named += node.args
        for value in named:
            for part in ast.walk(value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def folders_read(tree: ast.Module) -> Iterator[str]:
    """Yield literals that make a path, and so may be a folder: `Path("data")`, `folder / "data"`, `listdir("data")`."""
    for node in nodes(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            parts = list(_divided(node))[1:]
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            parts = node.args if name in _PATHS else []
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if texts and len(texts) == len(parts):
            yield from in_text("/".join(texts))


def in_card(card: Card) -> Iterator[str]:
    """Yield every text of the card's keys, and what its instruction includes."""
    yield from in_text(card.body)
    yield from _texts(card.keys.data)


def folders_in_card(card: Card) -> Iterator[str]:
    """Yield paths that may be folders and are meant whole: `skills`."""
    yield from _texts(card.keys.data.get("skills"))


def in_text(text: str) -> Iterator[str]:
    """Yield the text where it could be a path (`tools.py:add` names `tools.py`), and what `{{file:...}}` includes."""
    for match in _INCLUDED.finditer(text):
        yield match[1].strip()
    if 0 < len(text) <= _LONGEST and not any(char in text for char in "\n\0{"):
        yield text
        if ".py:" in text:
            yield text.partition(".py:")[0] + ".py"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _texts(child)
    elif isinstance(value, list):
        for child in value:
            yield from _texts(child)
    elif isinstance(value, str):
        yield from in_text(value)


def _divided(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _divided(node.left)
        yield node.right
    else:
        yield node


def _joined(parts: list[ast.expr]) -> Iterator[str]:
    """Yield the literals at the end of `parts` as one path, where there are several."""
    texts: list[str] = []
    for part in reversed(parts):
        if not isinstance(part, ast.Constant) or not isinstance(part.value, str):
            break
        texts.insert(0, part.value)
    if len(texts) > 1:
        yield from in_text("/".join(texts))
