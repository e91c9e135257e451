"""Tools that a command of ours runs: docker, and what puts images into a cluster."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Sequence

_LAST_LINES = 40
"""Docker's summary of a build that fails has 10 lines of the step, and the Dockerfile around it."""


class ToolFailed(Exception):
    """A tool that ended with an error. The text is the end of its output, empty where a person has just seen it.

    `output` is all of it.
    """

    def __init__(self, output: str, *, shown: bool) -> None:
        super().__init__("" if shown else "\n".join(output.rstrip().splitlines()[-_LAST_LINES:]))
        self.output = output


def run(command: Sequence[str]) -> None:
    """Run a tool: on a terminal it shows itself, elsewhere nothing is shown of it unless it fails.

    Raises:
        ToolFailed: it ended with an error.
    """
    shown = sys.stdout.isatty()
    code, output = _on_terminal(command) if shown else _captured(command)
    if code:
        raise ToolFailed(output.decode("utf-8", "replace"), shown=shown)


def _captured(command: Sequence[str]) -> tuple[int, bytes]:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603
    return done.returncode, done.stdout


def _on_terminal(command: Sequence[str]) -> tuple[int, bytes]:
    """Run a tool on a terminal of its own, and pass on what it shows: it draws as ever, and its words are kept."""
    parent, child = pty.openpty()
    with contextlib.suppress(OSError, ValueError):  # a terminal without a size
        fcntl.ioctl(child, termios.TIOCSWINSZ, fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, bytes(8)))
    with subprocess.Popen(command, stdout=child, stderr=child) as process:  # noqa: S603
        os.close(child)
        output = bytearray()
        while chunk := _read(parent):
            output += chunk
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    os.close(parent)
    return process.returncode, bytes(output)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # so Linux says that nobody has the other end any more
        return b""
