"""A task of the board as a Markdown document: what is known of it between two lines of `---`, then text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import yaml

from home_tools.problems import Malformed

Column = Literal["todo", "doing", "done"]
Priority = Literal["high", "medium", "low"]
COLUMNS: tuple[Column, ...] = get_args(Column)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
_HEAD = re.compile(r"\A---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a document says; what else stands in its head is the user's, and stays."""

    id: str
    """Name of the file, without `.md`."""
    title: str
    column: Column
    priority: Priority
    text: str = ""


def document(title: str, text: str, priority: Priority, created: str) -> str:
    """Return the document of a new task."""
    head = {"title": title, "status": COLUMNS[0], "priority": priority, "created": created}
    return f"---\n{_yaml(head)}---\n{text.strip()}\n"


def parse(name: str, content: str) -> Task:
    """Return the task that a document is.

    Raises:
        Malformed: it is none, and why.
    """
    head, body = _parts(name, content)
    title = str(head.get("title") or "").strip()
    if not title:
        raise Malformed(f"{name}: `title` is missing")
    column, priority = head.get("status", COLUMNS[0]), head.get("priority", "medium")
    if column not in COLUMNS:
        raise Malformed(f"{name}: `status: {column}` is none of {', '.join(COLUMNS)}")
    if priority not in PRIORITIES:
        raise Malformed(f"{name}: `priority: {priority}` is none of {', '.join(PRIORITIES)}")
    return Task(id=name.removesuffix(".md"), title=title, column=column, priority=priority, text=body.strip())


def moved(name: str, content: str, column: Column) -> str:
    """Return the document with another `status`; every other line stays as somebody has written it.

    Raises:
        Malformed: it is no task.
    """
    parse(name, content)
    found = _HEAD.match(content)
    assert found is not None  # else it would be no task
    head, times = re.subn(r"(?m)^status:.*$", f"status: {column}", found["head"], count=1)
    edited = content[: found.start("head")] + (head if times else f"{head}status: {column}\n")
    edited += content[found.end("head") :]
    if parse(name, edited).column != column:
        raise Malformed(f"{name}: `status` has a value of several lines: write it in one")
    return edited


def commented(name: str, content: str, comment: str, day: str) -> str:
    """Return the document with a line more.

    Raises:
        Malformed: it is no task.
    """
    parse(name, content)
    return f"{content.rstrip()}\n\n- {day}: {' '.join(comment.split())}\n"


def slug(title: str) -> str:
    """Return a name for the file of a task: letters and digits of its title."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:40].strip("-") or "task"


def _parts(name: str, content: str) -> tuple[dict[str, Any], str]:
    found = _HEAD.match(content)
    if found is None:
        raise Malformed(f"{name} has no head: it begins with `---`, `title: ...` and `---`, a line each")
    try:
        head = yaml.safe_load(found["head"])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", at line {mark.line + 2}" if mark else ""
        raise Malformed(f"{name} has a head that is no YAML{where}") from None
    if not isinstance(head, dict):
        raise Malformed(f"{name} has a head that is no list of `key: value`")
    return head, content[found.end() :]


def _yaml(value: dict[str, str]) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
