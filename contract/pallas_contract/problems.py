"""Problems of the user's input: where, what, and what to do about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from pallas_contract.codes import Code

Level = Literal["error", "warning"]

MOST = 100
"""Problems of one file that are named: a file of a MiB can have 100,000, too many for a terminal or a line of a log."""


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
    others: int = field(default=0, kw_only=True)
    """How many problems that are not named it stands for."""

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
    """The end of a stage that met errors; carries the first `MOST` of each file, never only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = named(problems)
        super().__init__("\n".join(map(str, self.problems)))


def named(problems: Iterable[Problem]) -> list[Problem]:
    """Return `MOST` problems of each file in its order, errors before warnings, and one that counts the others."""
    by_file: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        by_file[problem.where.file].append(problem)
    return [problem for _, of_file in sorted(by_file.items()) for problem in _named(of_file)]


def _named(problems: list[Problem]) -> list[Problem]:
    ranked = sorted(problems, key=lambda problem: (problem.others > 0, problem.level, problem))
    first = sorted(problem for problem in ranked[:MOST] if not problem.others)
    omitted = ranked[len(first) :]
    if not omitted:
        return first
    where = max(problem.where for problem in (first or omitted))
    level = min(problem.level for problem in omitted)  # "error" where one of them is
    return [*first, more(where, sum(problem.others or 1 for problem in omitted), level)]


def more(where: Where, others: int, level: Level = "error") -> Problem:
    """Return the problem at `where` that stands for `others` which are not named."""
    message = f"and {others} more problem{'s' if others > 1 else ''}"
    return Problem(where, message, "mend those above, then look again", level, code=Code.MORE_PROBLEMS, others=others)


def refuse_errors(problems: Iterable[Problem]) -> list[Problem]:
    """Return the warnings of `problems` in file order, the first `MOST` of each file.

    Raises:
        Refused: with all problems, when one of them is an error.
    """
    unique = named(set(problems))
    if any(problem.level == "error" for problem in unique):
        raise Refused(unique)
    return unique
