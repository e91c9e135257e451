"""The process that reads one PDF: it prints `{"pages": [[1, "text"], ...]}`, or `{"problem": "why not"}`.

A small file can unpack to gigabytes, and a crafted one can keep a parser busy for ever: the system bounds both.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from typing import Any

MOST_SECONDS = 20
"""Of processor time."""
MOST_MEMORY = 320 << 20
"""Bytes of address space; Python and the parser take a third of it."""
MOST_CHARACTERS = 16 << 20
MOST_PAGES = 5000
_BOMB = "unpacks to more than a document has: it may be a bomb"


class _Refusal(Exception):
    """Why a file is not taken."""


def main() -> None:
    """Read the file that the command line names."""
    seconds = (MOST_SECONDS, MOST_SECONDS + 5)  # at the first the system says why, at the second it kills
    for limit, values in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))):
        with suppress(ValueError, OSError):  # a system that has no such limit, or a lower one
            resource.setrlimit(limit, values)
    answer: dict[str, Any]
    try:
        answer = {"pages": _pages(sys.argv[1])}
    except _Refusal as error:
        answer = {"problem": str(error)}
    except ImportError:
        answer = {"problem": "needs pypdf: pip install -r requirements.lock"}
    except MemoryError:
        answer = {"problem": _BOMB}
    except RecursionError:
        answer = {"problem": "is damaged: its pages contain themselves"}
    except Exception as error:  # the parser of a format this loose raises anything
        answer = {"problem": f"is damaged: {type(error).__name__}: {str(error)[:200]}"}
    sys.stdout.write(json.dumps(answer))


def _pages(path: str) -> list[tuple[int, str]]:
    # in this process only, which may come to harm
    from pypdf import PdfReader  # noqa: PLC0415
    from pypdf.errors import LimitReachedError  # noqa: PLC0415

    pages: list[tuple[int, str]] = []
    left = MOST_CHARACTERS
    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise _Refusal("is encrypted: save it without a password")
    try:
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text()
            left -= len(text)
            if left < 0 or number > MOST_PAGES:
                raise _Refusal(f"has more than {MOST_PAGES} pages or {MOST_CHARACTERS >> 20} MiB of text: split it")
            pages.append((number, text.encode("utf-8", "replace").decode().replace("\0", " ")))
    except LimitReachedError:
        raise _Refusal(_BOMB) from None
    return pages


if __name__ == "__main__":
    main()
