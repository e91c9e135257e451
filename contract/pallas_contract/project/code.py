"""The user's code in the project folder, read as text; nothing of it is imported."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pallas_contract import limited_file
from pallas_contract.codes import Code
from pallas_contract.definitions import read
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import MAX_BYTES
from pallas_contract.problems import Problem, Refused, Where


def definitions(fleet: ResolvedFleet, text_of: read.TextOf) -> dict[str, Definitions]:
    """Return what the code of each agent of `fleet` defines, by the agent's name."""
    return {name: read.definitions(agent, text_of) for name, agent in fleet.agents.items()}


def reader(folder: Path) -> read.TextOf:
    """Return a reader of files in `folder`, each read once; what a link leads to outside of it is not there."""

    @cache
    def text_of(path: str) -> str | None:
        try:
            file = (folder / path).resolve()
            if not file.is_relative_to(folder) or not file.is_file():
                return None
            return _decoded(path, limited_file.read(file, MAX_BYTES))
        except limited_file.TooLarge:
            raise _refused(path, f"is larger than {MAX_BYTES >> 20} MiB") from None
        except OSError as error:
            raise _refused(path, f"cannot be read: {error.strerror}") from None

    return text_of


def files(folder: Path) -> Callable[[str], bool]:
    """Return whether there is a file at a path from `folder`, also behind a link out of it."""
    return lambda path: os.path.isfile(folder / path)  # unlike Path's, it never raises


def _decoded(path: str, content: bytes) -> str:
    """Return the text of a file; a module may name its encoding in a comment at the top, as Python reads it.

    Raises:
        Refused: it is no text in that encoding, or nobody knows the encoding.
    """
    encoding = "utf-8-sig"  # Python, too, passes over the mark that Windows editors write
    flaw = ""
    if path.endswith(".py"):
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        except SyntaxError as error:
            flaw = f"is not Python: {error.msg}"
    try:
        text = io.TextIOWrapper(io.BytesIO(content), encoding).read()
    except UnicodeDecodeError as error:
        name = "UTF-8" if encoding.startswith("utf-8") else encoding
        raise _refused(path, f"is not {name} text (byte {error.start})") from None
    except LookupError as error:
        raise _refused(path, f"is not Python: {error}", Code.NOT_PYTHON) from None
    if flaw:
        raise _refused(path, flaw, Code.NOT_PYTHON)
    return text


def _refused(path: str, message: str, code: Code = Code.UNREADABLE_FILE) -> Refused:
    return Refused([Problem(Where(path), message, code=code)])
