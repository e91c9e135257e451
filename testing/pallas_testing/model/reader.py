"""YAML files of this package read into models; every problem has file, line, column and what to do.

The kit's contract has a reader of this kind, which this package must not know: what tests a fleet from outside is
installed and changed apart from it. So this one is small, and for files of a test's own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]
MAX_BYTES = 16 << 20
_MESSAGES = {"missing": "is missing", "extra_forbidden": "is no key that is known here"}


class BadFile(Exception):
    """A file that cannot be used; `problems` has one text for each reason, in the order of the file."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: plain values, and where each of them stands."""

    name: str
    data: Any
    marks: Mapping[Place, tuple[int, int]] = field(repr=False)

    def where(self, path: Place) -> str:
        """Return `file:line:column key.key` of a value, or of what is nearest around it."""
        ancestor = path
        while ancestor and ancestor not in self.marks:
            ancestor = ancestor[:-1]
        line, column = self.marks.get(ancestor, (1, 1))
        return f"{self.name}:{line}:{column} {dotted(path)}".rstrip()

    def check[M: BaseModel](self, model: type[M]) -> M:
        """Return the file as `model`.

        Raises:
            BadFile: it does not fit.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            problems = {self._problem(details, model): None for details in error.errors(include_url=False)}
            raise BadFile(list(problems)) from None

    def _problem(self, details: ErrorDetails, model: type[BaseModel]) -> str:
        place = self._known(details["loc"])
        if details["type"] in _MESSAGES:
            place = details["loc"]
        message = _MESSAGES.get(details["type"]) or details["msg"].removeprefix("Value error, ")
        hint = _hint(details, model)
        return f"{self.where(place)}: {message}" + (f"\n    {hint}" if hint else "")

    def _known(self, path: Place) -> Place:
        """Return as much of a path as the file has: pydantic adds the members of a union."""
        while path and path not in self.marks:
            path = path[:-1]
        return path


def dotted(path: Place) -> str:
    return ".".join(map(str, path))


def read(path: Path) -> Document:
    """Read and parse a file.

    Raises:
        BadFile: it is missing, too large, not UTF-8 or not YAML.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise BadFile([f"{path.name}: no such file\n    looked in {path.resolve().parent}"]) from None
    except OSError as error:
        raise BadFile([f"{path.name}: cannot be read: {error.strerror}"]) from None
    if len(raw) > MAX_BYTES:
        raise BadFile([f"{path.name}: is larger than {MAX_BYTES >> 20} MiB"])
    try:
        return parse(raw.decode("utf-8"), path.name)
    except UnicodeDecodeError as error:
        raise BadFile([f"{path.name}: is not UTF-8 text (byte {error.start})"]) from None


def parse(text: str, name: str) -> Document:
    """Parse the text of a file.

    Raises:
        BadFile: it is not YAML, empty, or has a key twice or one that is no text.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        hint = "strings with ':' or '#' need quotes; indent with spaces, not tabs"
        raise BadFile([f"{place}: broken YAML: {error.problem or error.context}\n    {hint}"]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFile([f"{name}: broken YAML: {(str(error) or 'nested too deep').splitlines()[0]}"]) from None
    if not isinstance(data, dict):
        raise BadFile([f"{name}:1:1: must be a mapping of keys\n    see docs/scripted-model.md"])
    marks: dict[Place, tuple[int, int]] = {}
    if problems := list(_walk(node, (), name, marks)):
        raise BadFile(problems)
    return Document(name, data, marks)


def _walk(node: Any, path: Place, name: str, marks: dict[Place, tuple[int, int]]) -> Iterator[str]:
    marks.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
    if isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _walk(value, (*path, index), name, marks)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            inner = (*path, key.value if isinstance(key, yaml.ScalarNode) else "?")
            where = f"{name}:{line}:{column} {dotted(inner)}"
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                yield f"{where}: keys must be text\n    YAML reads this key as another type: put it in quotes"
            elif inner in marks:
                yield f"{where}: this key is given twice\n    remove one of the two"
            else:
                marks[inner] = (line, column)
                yield from _walk(value, inner, name, marks)


def _hint(details: ErrorDetails, model: type[BaseModel]) -> str:
    if details["type"] != "extra_forbidden":
        return ""
    keys = sorted(_keys(details["loc"][:-1], model))
    close = difflib.get_close_matches(str(details["loc"][-1]), keys, n=1)
    return f"did you mean `{close[0]}`?" if close else f"it takes {', '.join(keys)}"


def _keys(path: Place, model: type[BaseModel]) -> Iterator[str]:
    """Yield the keys that the model at a path takes, by its JSON Schema."""
    schema = model.model_json_schema(by_alias=True)
    node: Any = schema
    for step in path:
        node = _resolved(node, schema)
        if isinstance(step, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(step) or node.get("additionalProperties", {})
    yield from _resolved(node, schema).get("properties", {})


def _resolved(node: Any, schema: Mapping[str, Any]) -> Any:
    while "$ref" in node or "anyOf" in node:
        if "anyOf" in node:
            node = next((option for option in node["anyOf"] if "$ref" in option), {})
        else:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node
