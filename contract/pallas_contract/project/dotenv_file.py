"""The names in `.env`, and lines of it that set nothing; the values are nobody's business here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pallas_contract import limited_file
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Where

_QUOTES = ("'", '"')


def keys(path: Path) -> set[str]:
    """Return the names that the file sets; none where it is not there or cannot be read."""
    try:
        return {line.partition("=")[0].strip() for _, line in _lines(path) if "=" in line}
    except limited_file.TooLarge:
        return set()


def problems(path: Path) -> Iterator[Problem]:
    """Yield a warning per line that sets nothing, or an error where agents would refuse the whole file."""
    try:
        lines = list(_lines(path))
    except limited_file.TooLarge as error:
        yield Problem(Where(path.name), f"cannot be read: {limited_file.reason(error)}", code=Code.UNREADABLE_FILE)
        return
    for number, line in lines:
        if "=" not in line:
            name = line.strip() if line.strip().isidentifier() else "NAME"
            where = Where(path.name, number, 1)
            yield Problem(
                where,
                "sets nothing: there is no `=`",
                f"write `{name}=value`, or remove it",
                "warning",
                code=Code.DOTENV_LINE,
            )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is to set something; a value in quotes may go on over several.

    Raises:
        limited_file.TooLarge: by the first.
    """
    if not path.is_file() or not os.access(path, os.R_OK):
        return
    quote = ""
    for number, line in enumerate(limited_file.text(path, encoding="utf-8-sig", errors="replace").splitlines(), 1):
        text = line.strip().removeprefix("export ")
        if quote:
            quote = "" if quote in line else quote
            continue
        if not text or text.startswith("#"):
            continue
        value = text.partition("=")[2].strip()
        if value[:1] in _QUOTES and value.count(value[0]) == 1:
            quote = value[0]
        yield number, text
