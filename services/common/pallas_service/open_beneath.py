"""Files beneath a folder, opened so that neither a path nor a link leads out of it (seed 004, Path Whitelists).

A path that was compared with a list of folders can still lead elsewhere: through a link, or one that comes between the
comparison and the opening. So each part is opened from the descriptor of the one before, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat

_PARENT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(folder: int, path: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Return the descriptor of the regular file `path` beneath the descriptor `folder`, opened with `flags`.

    With the folder bound it is an `opener` of `open`. `mode` is that of a file which is made.

    Raises:
        OSError: `path` is absolute or has `..`, a part of it is a link, or it names no regular file.
        ValueError: it has a zero byte.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or not parts:
        raise PermissionError(errno.EPERM, "is no path beneath the folder", path)
    *parents, name = parts
    directory = os.dup(folder)
    try:
        for parent in parents:
            inner = os.open(parent, _PARENT, dir_fd=directory)
            os.close(directory)
            directory = inner
        # without waiting: a pipe would keep its opener for ever
        safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        opened = os.open(name, flags | safe, mode, dir_fd=directory)
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise PermissionError(errno.EPERM, "is no regular file", path)
    return opened
