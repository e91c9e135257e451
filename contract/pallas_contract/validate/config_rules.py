"""Rules over fast-agent's configuration by its own schema, with positions; values are not shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.fleet import engine_table
from pallas_contract.fleet.fastagent import VARIABLE
from pallas_contract.fleet.source import Path_, Source, is_plain
from pallas_contract.problems import Problem
from pallas_contract.validate.suggestions import Suggestions

_OURS = frozenset({"model_capabilities"})
"""Keys of seed 001 that fast-agent leaves to others."""
_ELSEWHERE = {
    "mcpServers": "write `mcp: {servers: {...}}`",
    "mcp_servers": "write `mcp: {servers: {...}}`",
    "servers": "write `mcp: {servers: {...}}`",
    "model": "write `default_model: PROVIDER.MODEL`",
    "models": "write `default_model: PROVIDER.MODEL`",
    "api_key": "write `openai: {api_key: ${OPENAI_API_KEY}}`",
    "agents": "agents stand in agents.yaml",
}
"""What others write at the top, and what fast-agent takes for it."""
_SHORTHAND = {"MCPServerSettings": frozenset({"target"})}
"""Keys that fast-agent reads before its schema does."""
_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "integer": (int, float),
    "null": type(None),
    "number": (int, float),
    "object": Mapping,
    "string": str,
}
_TRUTH = re.compile(r"true|false|yes|no|on|off|t|f|y|n|1|0", re.IGNORECASE)


def problems(tree: Source) -> Iterator[Problem]:
    """Yield an error per value that fast-agent refuses at start, and a warning per key that it does not know."""
    if not isinstance(tree.data, Mapping):
        return
    checker = _Checker(tree)
    known = engine_table.settings()
    for key, value in tree.data.items():
        if key in known:
            yield from checker.check(value, known[key], (key,))
        elif key not in _OURS:
            yield checker.unknown((key,), sorted({*known, *_OURS}), _ELSEWHERE.get(key, ""))


def misspells_model(tree: Source | None) -> bool:
    """Return whether a key at the top was meant to be `default_model`, as `defaultmodel` or `model`."""
    if tree is None or not isinstance(tree.data, Mapping):
        return False
    known = sorted({*engine_table.settings(), *_OURS})
    suggestions = Suggestions()
    hints = (_ELSEWHERE.get(key) or suggestions.hint(key, known) for key in tree.data if key not in known)
    return any(hint in (_ELSEWHERE["model"], "did you mean `default_model`?") for hint in hints)


class _Checker:
    """The schema's rules over one file, as pydantic applies them: a text with a number will do for a number."""

    def __init__(self, tree: Source) -> None:
        self._tree = tree
        self._suggestions = Suggestions()

    def unknown(self, path: Path_, keys: list[str], hint: str = "") -> Problem:
        hint = hint or self._suggestions.hint(str(path[-1]), keys, "known keys")
        return self._tree.problem(
            *path,
            message="fast-agent ignores this unknown key",
            hint=hint,
            level="warning",
            code=Code.CONFIG_UNKNOWN_KEY,
        )

    def check(self, value: Any, schema: Mapping[str, Any], path: Path_) -> Iterator[Problem]:
        branches = list(_branches(schema))
        fitting = [branch for branch in branches if _has_type(value, branch)]
        if not fitting:
            yield self._mismatch(value, branches, path)
        elif len(fitting) == 1:
            yield from self._inside(value, fitting[0], path)

    def _mismatch(self, value: Any, branches: list[Mapping[str, Any]], path: Path_) -> Problem:
        words = [_WORDS[branch["type"]] for branch in branches if branch.get("type") in _WORDS]
        hint = ""
        if isinstance(value, bool | int | float) and "text" in words:
            hint = "put the value in quotes"
        elif isinstance(value, str) and is_plain(value):
            hint = "write it without quotes"
        return self._tree.problem(
            *path, message=f"must be {' or '.join(dict.fromkeys(words))}", hint=hint, code=Code.CONFIG_SHAPE
        )

    def _inside(self, value: Any, schema: Mapping[str, Any], path: Path_) -> Iterator[Problem]:
        choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        if choices and isinstance(value, str) and value not in choices and not VARIABLE.search(value):
            hint = self._suggestions.hint(value, [str(choice) for choice in choices], "one of")
            yield self._tree.problem(
                *path, message="is no value that fast-agent takes here", hint=hint, code=Code.CONFIG_VALUE
            )
        if isinstance(value, Mapping):
            yield from self._mapping(value, schema, path)
        elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            for index, entry in enumerate(value):
                yield from self.check(entry, schema["items"], (*path, index))

    def _mapping(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: Path_) -> Iterator[Problem]:
        properties = schema.get("properties", {})
        rest = schema.get("additionalProperties")
        for key, entry in value.items():
            if (*path, key) == ("mcp", "targets"):
                hint = "write each under a name: `servers: {NAME: {target: ...}}`"
                yield self._tree.problem(
                    *path, key, message="fast-agent no longer takes it", hint=hint, code=Code.CONFIG_GONE
                )
            elif (*path, key) == ("mcp", "servers") and entry is None:  # nothing below it is as good as no servers
                continue
            elif key in properties:
                yield from self.check(entry, properties[key], (*path, key))
            elif isinstance(rest, Mapping):
                yield from self.check(entry, rest, (*path, key))
            elif properties and key not in _SHORTHAND.get(str(schema.get("name")), ()):
                yield self.unknown((*path, key), sorted(properties))


def _branches(schema: Mapping[str, Any], name: str = "") -> Iterator[Mapping[str, Any]]:
    """Yield the alternatives of a schema, references followed; each says by what name it was referred to."""
    if "$ref" in schema:
        yield from _branches(engine_table.definition(schema["$ref"]), schema["$ref"].rpartition("/")[2])
        return
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not alternatives:
        yield {**schema, "name": name}
        return
    for alternative in alternatives:
        yield from _branches(alternative, name)


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value is of the schema's type, or a text that pydantic makes one of it."""
    kind = schema.get("type")
    if isinstance(value, str):
        variable = VARIABLE.search(value) and kind not in ("array", "object")
        number = kind in ("integer", "number") and value[:1].isdigit()  # `45s` is a number of seconds
        return bool(variable or number or kind in (None, "string") or (kind == "boolean" and _TRUTH.fullmatch(value)))
    if kind == "boolean":
        return value in (0, 1)
    if isinstance(value, bool) and {"on", "off"} <= set(schema.get("enum", ())):  # as YAML 1.1 reads `on`
        return True
    return kind is None or isinstance(value, _TYPES[kind])
