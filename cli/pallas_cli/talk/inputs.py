"""What a person hands over with a question: its text, files of images, and a token from a file or the environment."""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where

MIME_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Types that an agent takes (seed 001)."""


def images(files: Iterable[Path]) -> list[dict[str, str]]:
    """Return images as they go over the wire: `data` in base64, and `mime_type` by the file's suffix.

    Raises:
        Refused: with every file that is no image, or cannot be read.
    """
    loaded = []
    problems = []
    for file in files:
        mime_type, _ = mimetypes.guess_type(file.name)
        if mime_type not in MIME_TYPES:
            known = ", ".join(kind.removeprefix("image/") for kind in MIME_TYPES)
            problems.append(
                Problem(
                    Where(str(file)), "is no image that agents take", f"by its suffix: {known}", code=Code.NOT_AN_IMAGE
                )
            )
            continue
        try:
            loaded.append({"data": base64.b64encode(file.read_bytes()).decode(), "mime_type": mime_type})
        except OSError as error:
            problems.append(
                Problem(
                    Where(str(file)), f"cannot be read: {(error.strerror or '').lower()}", code=Code.UNREADABLE_INPUT
                )
            )
    if problems:
        raise Refused(problems)
    return loaded


def read(source: Callable[[], str]) -> str:
    """Return what `source` reads from standard input.

    Raises:
        Refused: it is no text in the encoding of the locale.
    """
    try:
        return source()
    except UnicodeDecodeError as error:
        hint = f"convert it: iconv -f ENCODING -t {error.encoding}"
        raise Refused(
            [Problem(Where("standard input"), f"is no text in {error.encoding}", hint, code=Code.UNREADABLE_INPUT)]
        ) from None


@dataclass(frozen=True, slots=True)
class Token:
    """What is shown to an agent that asks for it, and where it is from: a file, or a variable with `$` before it."""

    text: str = field(repr=False)
    source: str


def token(file: Path | None) -> Token | None:
    """Return the token in `file`, else that of the environment; None where there is neither. It is never printed.

    Raises:
        Refused: the file cannot be read, or what is there is no token.
    """
    where = str(file) if file else names.ENV_TOKEN
    try:
        text = file.read_text("utf-8", errors="replace") if file else os.environ.get(names.ENV_TOKEN, "")
    except OSError as error:
        raise Refused(
            [Problem(Where(where), f"cannot be read: {(error.strerror or '').lower()}", code=Code.UNREADABLE_INPUT)]
        ) from None
    text = text.strip()
    if not text and file is None:
        return None
    if not text or not text.isascii() or not text.isprintable():
        raise Refused([Problem(Where(where), "holds no token: one line of ASCII", code=Code.NO_TOKEN)])
    return Token(text, where if file else f"${where}")
