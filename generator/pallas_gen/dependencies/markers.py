"""Environment markers of requirements (`; sys_platform == "win32"`), evaluated for the agent image. Pure.

Their grammar (Dependency specifiers, packaging.python.org) is that of expressions in Python but for `~=` and `===`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

IMAGE: Mapping[str, str] = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.13.0",
    "python_version": "3.13",
    "sys_platform": "linux",
}
"""The variables that are the same in every agent image; the machine is that of whoever builds it."""
_VERSIONS = frozenset({"python_version", "python_full_version"})
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


def applies(marker: str) -> bool:
    """Return whether what has the marker is installed into the image; True where that is not certain."""
    try:
        expression = ast.parse(marker.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return _value(expression) is not False


def _value(node: ast.expr) -> bool | None:
    """Return the truth of an expression, None where it is not known."""
    if isinstance(node, ast.BoolOp):
        values = [_value(part) for part in node.values]
        decisive = isinstance(node.op, ast.Or)
        if decisive in values:
            return decisive
        return None if None in values else not decisive
    return _comparison(node) if isinstance(node, ast.Compare) and len(node.ops) == 1 else None


def _comparison(node: ast.Compare) -> bool | None:
    left, right = node.left, node.comparators[0]
    compare = _COMPARE.get(type(node.ops[0]))
    variables = [part.id for part in (left, right) if isinstance(part, ast.Name)]
    if compare is None or len(variables) != 1 or variables[0] not in IMAGE:
        return None
    texts = [IMAGE[variables[0]] if isinstance(part, ast.Name) else _text(part) for part in (left, right)]
    if None in texts:
        return None
    if variables[0] in _VERSIONS and not isinstance(node.ops[0], ast.In | ast.NotIn):
        numbers = [_version(text or "") for text in texts]
        return None if None in numbers else compare(*numbers)
    return compare(*texts)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _version(text: str) -> tuple[int, ...] | None:
    """Return a version as numbers, zeros at its end left out; None for one with letters or a star."""
    parts = text.split(".")
    if not all(part.isdecimal() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
