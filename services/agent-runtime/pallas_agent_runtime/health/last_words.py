"""The end of what a program writes to stderr, and its exit code: why an MCP server on stdio is not there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINES = 20
"""Last lines that are kept."""
LONGEST_LINE = 1000
"""Characters of a line that are kept."""
_CHUNK = 64 * 1024


class LastWords:
    """The stderr of one program, read to its end for as long as the program, or what it has started, writes there."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES)
        self._rest = b""
        self._fd: int | None = None
        self.exit_code: Callable[[], int | None] = lambda: None
        """Gives the exit code, negative for a signal; None while the program runs, or was never started."""

    @contextmanager
    def pipe(self) -> Iterator[int]:
        """Yield the file descriptor for stderr of the program that is started meanwhile."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        try:
            yield write
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)  # the program has its own: with it the end of the pipe comes
        self._fd = read
        asyncio.get_running_loop().add_reader(read, self._read)

    @property
    def ending(self) -> str:
        """Return how the program ended: `exit code 2`, `SIGKILL`; empty while it runs."""
        code = self.exit_code()
        if code is None:
            return ""
        if code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def lines(self) -> list[str]:
        """Return the last lines that are not blank, with all that was written by now."""
        while self._fd is not None and self._read():
            pass
        rest = self._rest.decode("utf-8", "replace")
        return [*self._lines, *([rest.rstrip()[:LONGEST_LINE]] if rest.strip() else [])]

    def _read(self) -> bool:
        """Take what the pipe holds; return whether there may be more."""
        if self._fd is None:
            return False
        try:
            chunk = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
            return False
        *whole, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-4 * LONGEST_LINE :]  # of a line without an end; a character has at most four bytes
        for line in whole:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self._lines.append(text[:LONGEST_LINE])
        return True
