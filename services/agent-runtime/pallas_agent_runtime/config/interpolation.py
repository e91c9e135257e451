"""`${NAME}` and `${NAME:default}` in fast-agent's files: which are unset, and what a text becomes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pallas_contract.fleet.fastagent import VARIABLE

Path_ = tuple[str | int, ...]


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` as fast-agent will read it; a variable that is unset and has no default stays as it is written."""
    return VARIABLE.sub(lambda match: environ.get(match["name"], match["default"] or match[0]), text)


def canonical(text: str) -> str:
    """Return the shell's `${NAME:-default}` as fast-agent's `${NAME:default}`, which would keep the hyphen."""
    return VARIABLE.sub(
        lambda match: match[0] if match["default"] is None else f"${{{match['name']}:{match['default']}}}", text
    )


def unset(tree: Any, environ: Mapping[str, str], path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    """Yield path and variable of every text in `tree` that needs a variable which is neither set nor has a default."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from unset(value, environ, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from unset(value, environ, (*path, index))
    elif isinstance(tree, str):
        for match in VARIABLE.finditer(tree):
            if match["default"] is None and match["name"] not in environ:
                yield path, match["name"]


def without(tree: Any, paths: frozenset[Path_], path: Path_ = ()) -> Any:
    """Return a copy of `tree` without the values at `paths`, every text made `canonical`."""
    if isinstance(tree, Mapping):
        entries = ((key, value) for key, value in tree.items() if (*path, key) not in paths)
        return {key: without(value, paths, (*path, key)) for key, value in entries}
    if isinstance(tree, list):
        items = ((index, value) for index, value in enumerate(tree) if (*path, index) not in paths)
        return [without(value, paths, (*path, index)) for index, value in items]
    return canonical(tree) if isinstance(tree, str) else tree
