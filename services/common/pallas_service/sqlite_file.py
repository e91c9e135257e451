"""One SQLite file of a service: private to its user, and used in one thread beside the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


class CannotStore(Exception):
    """A file that cannot be used, or not be written to; the text says why."""


class SqliteThread:
    """A connection whose statements run one call after the other, in a thread of their own."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        """`name` is that of the thread."""
        self.connection = connection
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run[*A, R](self, work: Callable[[*A], R], *args: *A) -> R:
        """Return `work(*args)`, called in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *args)

    def close(self) -> None:
        """Wait for what is being written, and close the file."""
        self._executor.shutdown()
        self.connection.close()


def connect(path: Path, *, timeout: float) -> sqlite3.Connection:
    """Open the file at `path`, made when it is not there, for this user only; its folder too.

    `timeout` is the seconds to wait for another process that uses the file.

    Raises:
        OSError, sqlite3.Error: it cannot be opened or made.
    """
    path.parent.mkdir(mode=0o700, exist_ok=True)
    # SQLite would make it as the umask has it, and gives what it puts beside the file the mode of the file
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    import sqlite3  # noqa: PLC0415 - a megabyte, for those who asked for a file

    return sqlite3.connect(path, timeout=timeout, check_same_thread=False)


def cannot_store(path: Path, error: OSError | sqlite3.Error) -> CannotStore:
    """Return the error to raise for `path`, in one line that names it."""
    return CannotStore(f"{path}: {(getattr(error, 'strerror', None) or str(error)).lower()}")
