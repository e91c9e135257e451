"""Rules against secrets in plain text: what stands in these files is copied into generated ones, charts and images."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet import providers
from pallas_contract.fleet.source import Path_, Source
from pallas_contract.problems import Problem
from pallas_contract.validate import secret_shapes

ALLOW = names.ALLOW_PLAIN_SECRETS
"""The option of the commands that write, which makes warnings of these errors."""

_MESSAGE = "a secret in plain text, which generated files and images would hold"
_COMMAND_LINES = frozenset({"args", "command", "entrypoint", "target"})


def problems(fleet: Source, config: Source | None, *, allow: bool) -> list[Problem]:
    """Return a problem per literal secret in agents.yaml and fast-agent's configuration; with `allow` a warning."""
    literals = [*in_fleet(fleet), *(in_config(config) if config else ())]
    return [_allowed(problem) for problem in literals] if allow else literals


def in_fleet(tree: Source) -> Iterator[Problem]:
    """Yield a problem per literal secret in agents.yaml."""
    for path in _places(tree.data, ()):
        variable = _variable(_names(path))
        if _names(path)[-2:-1] == ["secrets"] or path[-1] == "otlp_endpoint":  # refused by their shape
            continue
        if "env" in _names(path)[:-1]:
            hint = f"instead of `env`, write `{_reference(variable)}`"
        else:
            hint = f"write `{_reference(variable)}`, and read the variable where the value is needed"
        yield _problem(tree, path, hint)


def in_config(tree: Source) -> Iterator[Problem]:
    """Yield a problem per literal secret in fast-agent's configuration (not in its file for secrets)."""
    for path in _places(tree.data, ()):
        variable = _variable(_names(path))
        hint = f"write `${{{variable}}}` in its place, and in agents.yaml `defaults: {{{_reference(variable)}}}`"
        yield _problem(tree, path, hint)


def _allowed(problem: Problem) -> Problem:
    """Return the warning that stands for an error of this module under `ALLOW`."""
    return replace(
        problem, hint=f"`{ALLOW}` lets it through: keep the files that are written to yourself", level="warning"
    )


def _reference(variable: str) -> str:
    return f"secrets: {{{variable}: {{file: secrets/{variable}.txt}}}}"


def _names(path: Path_) -> list[str]:
    return [part for part in path if isinstance(part, str)]


def _problem(tree: Source, path: Path_, hint: str) -> Problem:
    return tree.problem(*path, message=_MESSAGE, hint=f"{hint} (or allow it: `{ALLOW}`)", code=Code.PLAIN_SECRET)


def _places(value: Any, path: Path_) -> Iterator[Path_]:
    """Yield the path of each value that is or holds a literal secret."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _places(child, (*path, key))
    elif isinstance(value, list):
        texts = [child if isinstance(child, str) else "" for child in value]
        if _key(path) in _COMMAND_LINES:
            yield from ((*path, index) for index, _ in secret_shapes.in_arguments(texts))
        else:
            for index, child in enumerate(value):
                yield from _places(child, (*path, index))
    elif _in_scalar(_key(path), value):
        yield path


def _in_scalar(key: str, value: Any) -> bool:
    if not isinstance(value, str):
        return type(value) in (int, float) and secret_shapes.is_secret_key(key)
    if key in _COMMAND_LINES and any(secret_shapes.in_arguments(secret_shapes.words(value))):
        return True
    return secret_shapes.has_secret(key, value)


def _key(path: Path_) -> str:
    return (_names(path) or [""])[-1]


def _variable(names: list[str]) -> str:
    """Return the name of a variable for the secret at a path of keys.

    The provider's own (`openai.api_key`), the one of `env`, or one that is made of the server's name and the key.
    """
    key = names[-1] if names else ""
    provider = providers.find(names[0]) if len(names) == 2 else None
    if provider and provider.key_variable and secret_shapes.is_secret_key(key):
        return provider.key_variable
    if "env" in names[:-1]:
        return key
    owner = names[2] if names[:2] == ["mcp", "servers"] and len(names) > 3 else names[-2] if len(names) > 1 else ""
    word = key if secret_shapes.is_secret_key(key) and key.lower() not in ("authorization", "cookie") else "token"
    word = word.removeprefix("X-").removeprefix("x-")
    return re.sub(r"[^A-Z0-9]+", "_", f"{owner}_{word}".upper()).strip("_") or "TOKEN"
