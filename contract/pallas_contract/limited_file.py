"""Files of the user's, read without surprises: regular ones only, and no more of them than a limit.

A pipe that nobody writes to would hold up whoever reads it, and a file of gigabytes would take the memory of a program
that follows it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 1 << 20
"""Bytes of a file that people write: a thousand agents of ten lines each are 210 kB."""


class TooLarge(OSError):
    """A file with more bytes than its reader takes."""


def read(path: Path, limit: int = LARGEST) -> bytes:
    """Return the bytes of a file, or of the one that a link leads to.

    Raises:
        TooLarge: it has more than `limit` of them; memory is not taken for more.
        OSError: it cannot be opened, or is no regular file.
    """
    with open(path, "rb", opener=_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        # those of /proc have a size of 0, and any other may grow meanwhile
        content = file.read(limit + 1) if status.st_size <= limit else b""
    if status.st_size > limit or len(content) > limit:
        raise TooLarge(errno.EFBIG, f"Larger than {limit >> 20} MiB", str(path))
    return content


def text(path: Path, *, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of a file, its ends of lines as `\\n`.

    Raises:
        OSError: as `read`.
        UnicodeDecodeError: it is no text in that encoding.
    """
    return read(path).decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def reason(error: OSError) -> str:
    """Return why a file cannot be read, as the end of a sentence."""
    text = error.strerror or type(error).__name__
    return text[:1].lower() + text[1:]


def _at_once(path: str, flags: int) -> int:
    """Open without waiting for whoever is to write into a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
