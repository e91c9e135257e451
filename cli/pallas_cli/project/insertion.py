"""A further entry in a mapping of a YAML file, as text: comments, order and style of the rest stay. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from pallas_contract.fleet import source

_STEP = 2
"""Columns by which what we write is indented."""


class NoPlace(Exception):
    """The text has no place for the entry that could be found; a person has to write it."""


def insert(text: str, path: Sequence[str], name: str, value: Mapping[str, Any]) -> str:
    """Return `text` with `name: value` at the end of the mapping at `path`, which is made where it is missing.

    Raises:
        NoPlace: with it the file would not say what it said before, and the entry.
    """
    try:
        root = yaml.compose(text, Loader=source.Loader)
        changed = _insert(text, root, path, name=name, value=value)
        unchanged = source.parse(text, name="").data
        result = source.parse(changed, name="").data
    except Exception as error:  # whatever a YAML file can be: a mark that is not there, a text that is broken now
        raise NoPlace(str(error)) from None
    if result != _added(unchanged, path, name, value):
        raise NoPlace
    return changed


def lines(name: str, value: Any, indent: int) -> list[str]:
    """Return an entry in block style, `indent` columns in; lists and scalars are on the line of their key."""
    begin = " " * indent
    if isinstance(value, Mapping) and value:
        nested = [line for key, child in value.items() for line in lines(key, child, indent + _STEP)]
        return [f"{begin}{name}:", *nested]
    return [f"{begin}{name}: {_flow(value)}"]


def _added(data: Any, path: Sequence[str], name: str, value: Any) -> Any:
    expected = _apart(data) or {}
    mapping = expected
    for key in path:
        if mapping.get(key) is None:
            mapping[key] = {}
        mapping = mapping[key]
    mapping[name] = value
    return expected


def _apart(data: Any) -> Any:
    """Return a copy in which what an alias stands for is a copy as well, and so does not change with its anchor."""
    if isinstance(data, dict):
        return {key: _apart(value) for key, value in data.items()}
    return [_apart(value) for value in data] if isinstance(data, list) else data


def _insert(text: str, root: Any, path: Sequence[str], *, name: str, value: Any) -> str:
    node, key = root, None
    for depth, part in enumerate(path):
        child = next((entry for entry in node.value if entry[0].value == part), None)
        if child is None:
            for outer in reversed(path[depth + 1 :]):
                name, value = outer, {name: value}
            return _into(text, node, key, name=part, value={name: value})
        key, node = child
    return _into(text, node, key, name=name, value=value)


def _into(text: str, node: Any, key: Any, *, name: str, value: Any) -> str:
    """Return `text` with an entry more in the mapping `node`, which is the value of `key`; None for the document."""
    if isinstance(node, yaml.ScalarNode) and not node.value and key is not None:
        return _after(text, key.end_mark.index, lines(name, value, key.start_mark.column + _STEP))
    if not isinstance(node, yaml.MappingNode):
        raise NoPlace
    if node.flow_style:
        entry = f"{_flow(name)}: {_flow(value)}"
        if not node.value:
            return f"{text[: node.start_mark.index]}{{{entry}}}{text[node.end_mark.index :]}"
        end = _end(*node.value[-1])
        return f"{text[:end]}, {entry}{text[end:]}"
    column = node.value[0][0].start_mark.column
    before = text[node.start_mark.index : node.value[-1][0].start_mark.index]
    spaced = [""] if re.search(r"\n[ \t]*\r?\n", before) else []
    return _after(text, _end(*node.value[-1]), [*spaced, *lines(name, value, column)], column)


def _end(key: Any, value: Any) -> int:
    """Return where the last thing that an entry says ends. An alias has the place of its anchor, further up."""
    end: int = value.end_mark.index
    if isinstance(value, yaml.CollectionNode) and not value.flow_style and value.value:
        last = value.value[-1]
        end = _end(*last) if isinstance(value, yaml.MappingNode) else _end(last, last)
    return max(int(key.end_mark.index), end)


def _after(text: str, index: int, new: list[str], column: int | None = None) -> str:
    """Return `text` with lines after the one of `index`, and after comments that are further in than `column`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find("\n", len(text[:index].rstrip())) + 1
    if not end:
        text, end = f"{text}{newline}", len(text) + len(newline)
    if column is not None:
        within = re.compile(rf"(?:[ \t]*\r?\n)*[ ]{{{column + 1},}}#[^\n]*(?:\n|$)")
        while match := within.match(text, end):
            end = match.end()
            if not text.endswith("\n") and end == len(text):
                text, end = f"{text}{newline}", len(text) + len(newline)
    return text[:end] + "".join(f"{line}{newline}" for line in new) + text[end:]


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text.removesuffix("...\n").strip()
