"""Problems of the user's input: where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from pallas_contract.codes import Code

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A position in a file. `line` and `column` count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0
    field: str = ""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{position} {self.field}" if self.field else position


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to tell the user; `level` decides whether it stops the run, `code` names the rule for ever."""

    where: Where
    message: str
    hint: str = ""
    level: Level = "error"
    code: Code = field(kw_only=True)

    def __str__(self) -> str:
        prefix = "warning: " if self.level == "warning" else ""
        hint = f"\n    {printable(self.hint)}" if self.hint else ""
        return f"{prefix}{printable(str(self.where))}: {printable(self.message)} [{self.code}]{hint}"

    def text(self, *, verbose: bool) -> str:
        """Return the lines for a terminal; where `verbose`, with one that names the section of the docs."""
        return f"{self}\n    see {self.code.section}" if verbose else str(self)


def printable(text: str) -> str:
    """Return `text` with its control characters escaped: names of the user's go to terminals, where they act."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


class Refused(Exception):
    """The end of a stage that met errors; carries all of them, never only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(map(str, self.problems)))


def refuse_errors(problems: Iterable[Problem]) -> list[Problem]:
    """Return the warnings of `problems` in file order.

    Raises:
        Refused: with all problems, when one of them is an error.
    """
    unique = sorted(set(problems))
    if any(problem.level == "error" for problem in unique):
        raise Refused(unique)
    return unique
