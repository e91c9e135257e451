"""Files that an agent's definition names and that it does not start without; pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_contract.problems import Where

_INCLUDED = re.compile(r"(?<!\\)\{\{file:([^}]+)\}\}")
"""`file_silent` is for one that may be missing; a backslash before the braces makes plain text of them."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """One file, and the place that names it."""

    path: str
    """From the project folder, normalized; it may lead out of it."""
    where: Where
    purpose: str
    """A clause about the file: `which its instruction is read from`."""


def instruction(path: str, where: Where) -> NamedFile:
    """Return the file that an instruction is read from."""
    return NamedFile(os.path.normpath(path), where, "which its instruction is read from")


def included(text: str, where: Where) -> Iterator[NamedFile]:
    """Yield the files that an instruction includes by `{{file:...}}`, from the project folder."""
    for match in _INCLUDED.finditer(text):
        yield NamedFile(os.path.normpath(match[1].strip()), where, "which its instruction includes")


def included_in_body(body: str, file: str, first_line: int) -> Iterator[NamedFile]:
    """Yield the files that the body of a card includes, which begins with that line of the card `file`."""
    for match in _INCLUDED.finditer(body):
        line = first_line + body.count("\n", 0, match.start())
        yield from included(match[0], Where(file, line, match.start() - body.rfind("\n", 0, match.start())))


def history(path: str, card: str, where: Where) -> NamedFile:
    """Return a file of `messages` of the card at the path `card`, from whose folder it starts."""
    return NamedFile(os.path.normpath(os.path.join(os.path.dirname(card), path)), where, "which has its messages")
