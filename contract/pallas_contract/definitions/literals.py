"""Values in a syntax tree that can be known without running it: texts, lists of them, and constants of the module."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from pallas_contract.definitions.tree import nodes


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the variables of a module that are assigned in one place, with what they are assigned.

    One with a method called on it is none: `NAMES.append("x")` changes a list.
    """
    values: dict[str, ast.expr] = {}
    stores: Counter[str] = Counter()
    for node in nodes(tree):
        changed = node.value if isinstance(node, ast.Attribute) else node
        if isinstance(changed, ast.Name) and (changed is not node or not isinstance(changed.ctx, ast.Load)):
            stores[changed.id] += 1
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Name) and value is not None and stores[target.id] == 1:
                values[target.id] = value
    return values


def value(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 8) -> Any:
    """Return the text, list or tuple that `node` is, None where it is anything else; of `Path("a")` the text.

    `depth` ends circles of names.
    """
    if depth == 0:
        return None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Path"
        and len(node.args) == 1
    ):
        node = node.args[0]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return value(names[node.id], names, depth - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _sum(value(node.left, names, depth - 1), value(node.right, names, depth - 1))
    if isinstance(node, ast.List | ast.Tuple):
        entries: list[Any] = []
        for element in node.elts:
            inner = element.value if isinstance(element, ast.Starred) else element
            entry = value(inner, names, depth - 1)
            if isinstance(element, ast.Starred):
                entries.extend(entry if isinstance(entry, list) else [None])
            else:
                entries.append(entry)
        return entries
    return None


def path(node: ast.expr, names: Mapping[str, ast.expr], file: str, depth: int = 8) -> str | None:
    """Return the path that `node` makes with pathlib, None where it makes none or running the code decides.

    It starts from the project folder, where agents run; `file` is the module's own. Text alone makes no path.
    """
    if depth == 0:
        return None
    below = partial(path, names=names, file=file, depth=depth - 1)
    parts: list[str | None] = [None]
    match node:
        case ast.Name(id=name) if name in names:
            parts = [below(names[name])]
        case ast.Attribute(value=base, attr="parent"):
            parts = [below(base), ".."]
        case ast.BinOp(left=base, op=ast.Div(), right=right):
            parts = [below(base), _text(right, names)]
        case ast.Call(func=ast.Name(id="Path") | ast.Attribute(attr="Path"), args=args, keywords=[]):
            parts = [file if _is_own(entry) else _text(entry, names) for entry in args]
        case ast.Call(func=ast.Attribute(value=base, attr=method), args=args, keywords=[]) if method in _METHODS:
            parts = [below(base), *_METHODS[method], *(_text(entry, names) for entry in args)]
    texts = [part for part in parts if part is not None]
    return os.path.normpath(os.path.join("", *texts)) if len(texts) == len(parts) else None


_METHODS: Mapping[str, tuple[str, ...]] = {"absolute": (), "joinpath": (), "resolve": (), "with_name": ("..",)}
"""Methods of a path that make another one, each with what stands before its arguments."""


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__file__"


def _text(node: ast.expr, names: Mapping[str, ast.expr]) -> str | None:
    text = value(node, names)
    return text if isinstance(text, str) else None


def _sum(left: Any, right: Any) -> Any:
    same = (isinstance(left, str) and isinstance(right, str)) or (isinstance(left, list) and isinstance(right, list))
    return left + right if same else None


def texts(value: Any) -> tuple[str, ...] | None:
    """Return a list of texts as a tuple, None for anything else."""
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        return None
    return tuple(value)
