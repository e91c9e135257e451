"""Changes to the text of agents.yaml that leave every line where it was, so that problems name the user's own lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

Path = tuple[str, ...]
"""The keys that lead to a value."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Text that takes the place of what stands between two offsets."""

    start: int
    end: int
    text: str


def set_values(text: str, values: Mapping[Path, object]) -> str:
    """Return the YAML `text` with these scalars in it; a key that is not there is added to its mapping.

    A path whose mapping is not there, or is no mapping, is left out: the kit's commands say what is wrong with it. But
    a missing mapping at the top is added.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, MappingNode):
        return text
    edits = [edit for path, value in values.items() if (edit := _edit(text, root, path, str(value)))]
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.text), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edit(text: str, root: MappingNode, path: Path, value: str) -> _Edit | None:
    *parents, key = path
    mapping: Node | None = root
    for parent in parents:
        mapping = _child(mapping, parent)
    if mapping is None and len(parents) == 1:
        return _at_the_end(text, root, f"{parents[0]}: {{{key}: {value}}}")
    if not isinstance(mapping, MappingNode):
        return None
    scalar = _child(mapping, key)
    if isinstance(scalar, ScalarNode):
        return _Edit(scalar.start_mark.index, scalar.end_mark.index, value)
    if scalar is not None:
        return None
    line = f"{key}: {value}"
    return _at_the_end(text, root, line) if mapping is root else _at_the_start(mapping, line)


def _child(mapping: Node | None, key: str) -> Node | None:
    if not isinstance(mapping, MappingNode):
        return None
    return next((node for name, node in mapping.value if getattr(name, "value", None) == key), None)


def _at_the_start(mapping: MappingNode, line: str) -> _Edit:
    """Return the edit that puts a key before all others; a block goes on in a line of its own."""
    start = mapping.start_mark
    if mapping.flow_style:  # where it is the only key, YAML takes the comma all the same
        return _Edit(start.index + 1, start.index + 1, f"{line}, ")
    return _Edit(start.index, start.index, f"{line}\n{' ' * start.column}")


def _at_the_end(text: str, root: MappingNode, line: str) -> _Edit:
    """Return the edit that puts a key after all others, where it moves no line of the user's."""
    end = root.end_mark.index
    if root.flow_style:
        return _at_the_start(root, line)
    before = "" if text[:end].endswith("\n") else "\n"
    return _Edit(end, end, f"{before}{' ' * root.start_mark.column}{line}\n")
