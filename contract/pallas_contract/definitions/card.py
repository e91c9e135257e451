"""An agent card: YAML, or Markdown with YAML before the text (fast-agent's agent_card_loader)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from pallas_contract.codes import Code
from pallas_contract.definitions import named_files
from pallas_contract.definitions.definition import CHILDREN, Definition, FunctionTool
from pallas_contract.definitions.named_files import NamedFile
from pallas_contract.fleet import source
from pallas_contract.fleet.fastagent import VARIABLE
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Refused, Where

_YAML = frozenset({".yaml", ".yml"})
_FENCE = "---"


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its keys with their positions, the text below them, and the agent that it defines."""

    keys: Source
    body: str
    agent: Definition


# three readers ask for each card, and agents of a large fleet share some
@lru_cache(4096)
def parse(text: str, *, name: str) -> Card:
    """Parse the card `text`; `name` is its path in the project. Nobody changes what it returns.

    Raises:
        Refused: it has no frontmatter, broken YAML in it, or something else than a mapping.
    """
    path = PurePosixPath(name)
    text = text.removeprefix("\ufeff")
    frontmatter, body = (text, "") if path.suffix.lower() in _YAML else _split(text, name)
    keys = source.parse(frontmatter, name=name)
    if not isinstance(keys.data, Mapping):
        raise Refused(
            [keys.problem(message="must be a mapping with keys such as `type` and `servers`", code=Code.NOT_A_CARD)]
        )
    first_line = 1 + len(text.splitlines()) - len(body.splitlines())
    files = (*named_files.included_in_body(body, name, first_line), *_files(keys, path))
    return Card(keys, body, _agent(keys, path, files))


def _split(text: str, name: str) -> tuple[str, str]:
    """Return frontmatter and body of Markdown. Lines stay where they are, so that positions are those of the file."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[start].strip() == _FENCE:
        for end in range(start + 1, len(lines)):
            if lines[end].strip() == _FENCE:
                return "\n" * (start + 1) + "\n".join(lines[start + 1 : end]), "\n".join(lines[end + 1 :])
    hint = "begin it with `---`, a line `type: agent`, and `---` again; the instruction follows"
    raise Refused([Problem(Where(name, 1, 1), "has no frontmatter", hint, code=Code.NOT_A_CARD)])


def _agent(keys: Source, path: PurePosixPath, files: tuple[NamedFile, ...]) -> Definition:
    data = keys.data
    name = data.get("name")
    servers = data.get("servers")
    model = data.get("model")
    skills = data.get("skills")
    positions = {".".join(map(str, mark)): keys.where(*mark) for mark in keys.marks if mark}
    return Definition(
        name=path.stem.replace(" ", "_") if name is None else _literal(name),
        kind=str(data.get("type") or "agent"),
        where=keys.where(),
        servers=() if servers is None else _literals(servers),
        model="" if model is None else _literal(model),
        shell=data.get("shell") is True,
        skills=() if skills is None else _literals(skills if isinstance(skills, list) else [skills]),
        urls=tuple(_urls(data)),
        function_tools=tuple(_function_tools(keys, path)),
        children=dict(_children(keys)),
        files=files,
        positions=positions,
    )


def _literal(value: Any) -> str | None:
    # fast-agent expands variables in a card when it is loaded
    return value.strip() if isinstance(value, str) and not VARIABLE.search(value) else None


def _literals(value: Any) -> tuple[str, ...] | None:
    texts = [_literal(entry) for entry in value] if isinstance(value, list) else [None]
    return None if None in texts else tuple(text for text in texts if text is not None)


def _function_tools(keys: Source, path: PurePosixPath) -> Iterator[FunctionTool]:
    """Yield the tools that are functions in files; fast-agent takes a text, a list, and mappings in it."""
    written = keys.data.get("function_tools")
    for index, entry in enumerate(written if isinstance(written, list) else [written]):
        text = entry.get("entrypoint") if isinstance(entry, Mapping) else entry
        where = keys.where("function_tools", index) if isinstance(written, list) else keys.where("function_tools")
        if isinstance(text, str) and not VARIABLE.search(text):
            yield FunctionTool(text.strip(), where, str(path.parent))


def _children(keys: Source) -> Iterator[tuple[str, Where]]:
    """Yield the agents that it calls in its own process: lists, and single names."""
    for key in CHILDREN:
        written = keys.data.get(key)
        for index, entry in enumerate(written if isinstance(written, list) else [written]):
            name = _literal(entry)
            if name is not None:
                yield name, keys.where(key, index) if isinstance(written, list) else keys.where(key)


def _files(keys: Source, path: PurePosixPath) -> Iterator[NamedFile]:
    """Yield the files that `instruction` includes, and those of `messages`."""
    instruction = keys.data.get("instruction")
    if isinstance(instruction, str):
        yield from named_files.included(instruction, keys.where("instruction"))
    written = keys.data.get("messages")
    for entry in written if isinstance(written, list) else [written]:
        if isinstance(entry, str) and not VARIABLE.search(entry):
            yield named_files.history(entry, str(path), keys.where("messages"))


def _urls(data: Mapping[str, Any]) -> Iterator[str]:
    if data.get("type") == "a2a" and isinstance(data.get("url"), str):
        yield data["url"]
    written = data.get("mcp_connect")
    entries = list(written.values()) if isinstance(written, Mapping) else written
    for entry in entries if isinstance(entries, list) else []:
        for key in ("target", "url"):
            url = entry.get(key) if isinstance(entry, Mapping) else None
            if isinstance(url, str) and url.strip().lower().startswith(("http://", "https://", "${")):
                yield url.strip()
