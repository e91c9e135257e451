"""Read one YAML file into plain data that remembers where every value stood."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pallas_contract import limited_file
from pallas_contract.codes import Code
from pallas_contract.problems import Level, Problem, Refused, Where

MAX_BYTES = limited_file.LARGEST
"""Bytes of a file, and characters of its keys and values after aliases are expanded."""
MAX_DEPTH = 32
MAX_ALIASES = 100
MAX_NODES = 100_000
"""Nodes after aliases are expanded: what a reader of the tree would have to walk."""
MAX_KEY = 320
"""Characters of a key: the longest of Kubernetes' labels has 317, and every problem below a key repeats it."""
MAX_NUMBER = 64
"""Characters of a number: those of thousands take seconds to read (`1:30:00` counts by 60), or cannot be printed."""
MAX_FIELD = 200
"""Characters of a problem's field; a longer one is cut in its middle."""

_NUMBER_OR_TRUTH = re.compile(
    r"[-+]?(0b[01_]+|0x[0-9a-f_]+|[0-9][0-9_]*(\.[0-9_]*)?(e[-+][0-9]+)?|\.[0-9][0-9_]*(e[-+][0-9]+)?|\.inf)"
    r"|\.nan|true|false|yes|no|on|off",
    re.IGNORECASE,
)

_IN_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""YAML can spell these, but no environment, argument, path or UTF-8 file can hold them."""
_NO_TEXT = "has a character that no text may have: NUL, or half of a surrogate pair"
_NO_TEXT_HINT = "leave it out: no variable, path or file can hold it"

_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")

# libyaml is five times as fast (0.09 s against 0.48 s for a thousand agents), but not every build of PyYAML has it.
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """A parsed file: `data` as plain Python values, `marks` as path -> (line, column), both from 1."""

    name: str
    data: Any
    marks: Mapping[Path_, tuple[int, int]] = field(repr=False)

    def where(self, *path: str | int) -> Where:
        """Return the place of `path`, or of its nearest ancestor that is in the file."""
        ancestor = path
        while ancestor and ancestor not in self.marks:
            ancestor = ancestor[:-1]
        line, column = self.marks.get(ancestor, (0, 0))
        return Where(self.name, line, column, _field(path))

    def problem(self, *path: str | int, code: Code, message: str, hint: str = "", level: Level = "error") -> Problem:
        return Problem(self.where(*path), message, hint, level, code=code)


def read(path: Path) -> Source:
    """Read and parse `path`.

    Raises:
        Refused: the file is missing, unreadable, not UTF-8, or not YAML within the limits of this module.
    """
    return parse(text(path), name=path.name)


def text(path: Path) -> str:
    """Return the text of `path`.

    Raises:
        Refused: the file is missing, unreadable, no regular file, too large or not UTF-8.
    """
    try:
        raw = limited_file.read(path, MAX_BYTES)
    except FileNotFoundError:
        raise _refused(path, "no such file", _instead(path)) from None
    except limited_file.TooLarge:
        raise _refused(path, f"is larger than {MAX_BYTES >> 20} MiB") from None
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(path, f"is not UTF-8 text (byte {error.start})") from None


def _instead(path: Path) -> str:
    """Return what to do about a file that is not there; who is deep in a project is told of the one above."""
    folder = path.resolve().parent
    above = next((parent for parent in folder.parents if (parent / path.name).is_file()), None)
    if above is not None:
        return f"name the one in a folder above: {os.path.relpath(above / path.name)}"
    return f"create it (`pallas init` makes a whole project), or name another file (looked in {folder})"


def _refused(path: Path, message: str, hint: str = "") -> Refused:
    return Refused([Problem(Where(path.name), message, hint, code=Code.UNREADABLE_FILE)])


def parse(text: str, *, name: str) -> Source:
    """Parse `text`; `name` is what messages call the file.

    Raises:
        Refused: broken YAML, a document over the limits, a tag, a duplicate key or a key that is not text.
    """
    try:
        _check_events(text, name)
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            marks: dict[Path_, tuple[int, int]] = {}
            if node is not None:
                problems = list(_walk(node, (), name=name, marks=marks, budget=_Budget()))
                if problems:
                    raise Refused(problems)
            data = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Where(name, mark.line + 1, mark.column + 1) if mark else Where(name)
        hint = "strings with ':' or '#' need quotes; indent with spaces, not tabs"
        raise Refused(
            [Problem(where, f"broken YAML: {error.problem or error.context}", hint, code=Code.BROKEN_YAML)]
        ) from None
    except yaml.reader.ReaderError as error:
        before = text.partition(chr(error.character))[0]  # libyaml counts bytes, PyYAML's own parser characters
        where = Where(name, before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"broken YAML: unacceptable character #x{error.character:04x}"
        hint = "remove it: control characters have no place in YAML"
        raise Refused([Problem(where, message, hint, code=Code.BROKEN_YAML)]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = f"{error}".partition("\n")[0]
        raise Refused([Problem(Where(name), f"broken YAML: {reason}", code=Code.BROKEN_YAML)]) from None
    return Source(name, data, marks)


def is_plain(text: str) -> bool:
    """Return True for what YAML 1.1 reads as a number or a truth value where it stands without quotes.

    By a pattern: text of a value would otherwise be parsed behind the limits of this module.
    """
    return _NUMBER_OR_TRUTH.fullmatch(text) is not None


def _check_events(text: str, name: str) -> None:
    """Count depth, aliases and tags on the flat event stream, before anything recursive sees the document."""
    # An alias is one event here, and a copy of its whole anchor later: ten lines can expand to gigabytes.
    depth = aliases = 0
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        if depth > MAX_DEPTH:
            raise Refused(
                [Problem(_place(event, name), f"nested deeper than {MAX_DEPTH} levels", code=Code.YAML_LIMITS)]
            )
        if aliases > MAX_ALIASES:
            raise Refused([Problem(_place(event, name), f"more than {MAX_ALIASES} aliases", code=Code.YAML_LIMITS)])
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            message = f"tags are not allowed: {event.tag}"
            raise Refused([Problem(_place(event, name), message, "write the plain value", code=Code.YAML_TAG)])


def _place(event: Any, name: str) -> Where:
    mark = event.start_mark
    return Where(name, mark.line + 1, mark.column + 1) if mark else Where(name)


@dataclass(slots=True)
class _Budget:
    """The rest of what all branches of a tree may have together, aliases expanded."""

    nodes: int = MAX_NODES
    characters: int = MAX_BYTES

    def spend(self, node: Any, name: str, nodes: int = 1) -> None:
        """Count a value or key, and its characters.

        Raises:
            Refused: there is nothing left.
        """
        self.nodes -= nodes
        self.characters -= len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        if self.nodes < 0:
            message = f"expands to more than {MAX_NODES} values"
        elif self.characters < 0:
            message = f"expands to more than {MAX_BYTES >> 20} MiB"
        else:
            return
        raise Refused([Problem(_place(node, name), message, code=Code.YAML_LIMITS)])


def _walk(
    node: Any, path: Path_, *, name: str, marks: dict[Path_, tuple[int, int]], budget: _Budget
) -> Iterator[Problem]:
    budget.spend(node, name)
    mark = node.start_mark
    here = (mark.line + 1, mark.column + 1)
    if len(path) > MAX_DEPTH:  # an alias to its own parent has no end
        raise Refused([Problem(Where(name, *here), f"nested deeper than {MAX_DEPTH} levels", code=Code.YAML_LIMITS)])
    # A value of a mapping has its mark already: messages point at the key, not behind it.
    marks.setdefault(path, here)
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            yield from _check_key(key, path, name, keys)
            budget.spend(key, name, nodes=0)
            marks.setdefault((*path, key.value), (key.start_mark.line + 1, key.start_mark.column + 1))
            yield from _walk(value, (*path, key.value), name=name, marks=marks, budget=budget)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _walk(value, (*path, index), name=name, marks=marks, budget=budget)
    else:
        if _IN_NO_TEXT.search(node.value):
            yield Problem(Where(name, *here, _field(path)), _NO_TEXT, _NO_TEXT_HINT, code=Code.IMPOSSIBLE_CHARACTER)
        if node.tag in _NUMBER_TAGS and len(node.value) > MAX_NUMBER:
            message = f"is a number of more than {MAX_NUMBER} characters"
            hint = "put it in quotes if it is a text"
            yield Problem(Where(name, *here, _field(path)), message, hint, code=Code.YAML_LIMITS)


def _check_key(key: Any, path: Path_, name: str, keys: set[str]) -> Iterator[Problem]:
    # YAML 1.1 reads the keys `on`, `no`, `1` and `null` as other types; `<<` merges a mapping and is resolved later.
    if not isinstance(key, yaml.ScalarNode) or key.tag not in _KEY_TAGS:
        hint = "YAML reads this key as another type: put it in quotes"
        raise Refused([Problem(_of_key(key, path, name), "keys must be text", hint, code=Code.KEY_NOT_TEXT)])
    # These two without the field, which would be this key: a message with it could not be printed, or would be as long.
    if len(key.value) > MAX_KEY:
        message = f"this key has more than {MAX_KEY} characters"
        raise Refused([Problem(_place(key, name), message, "shorten it", code=Code.YAML_LIMITS)])
    if _IN_NO_TEXT.search(key.value):
        raise Refused([Problem(_place(key, name), _NO_TEXT, _NO_TEXT_HINT, code=Code.IMPOSSIBLE_CHARACTER)])
    if key.value in keys:
        where = _of_key(key, path, name)
        yield Problem(where, "this key is given twice", "remove one of the two", code=Code.DUPLICATE_KEY)
    keys.add(key.value)


def _of_key(key: Any, path: Path_, name: str) -> Where:
    last = key.value if isinstance(key, yaml.ScalarNode) else "?"
    return Where(name, key.start_mark.line + 1, key.start_mark.column + 1, _field((*path, last)))


def _field(path: Path_) -> str:
    """Return the path as problems have it."""
    text = ".".join(map(str, path))
    return text if len(text) <= MAX_FIELD else f"{text[: MAX_FIELD // 2]}...{text[-MAX_FIELD // 2 :]}"
