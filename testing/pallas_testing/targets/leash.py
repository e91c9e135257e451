"""A process that ends what a test has started when the test's process is gone, however that ended.

It is run by its path and needs nothing but Python: its argument is an `Order` as JSON, its standard input a pipe that
the test holds. When the pipe closes it interrupts the command, kills what does not end in time, and runs what cleans
up; a line on the pipe before that says that the test has cleaned up itself. A command that ends before that ends the
leash, and nothing is cleaned up: the test hears of it, and still holds what was started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypedDict

_DONE = "done\n"


class Order(TypedDict):
    """`run` is the command, empty for none: then it only waits for the pipe.

    `clean` are the commands afterwards; `grace` is in seconds.
    """

    run: Sequence[str]
    clean: Sequence[Sequence[str]]
    grace: float


class Leash:
    """The test's end of it. `start` may raise OSError."""

    def __init__(self, order: Order, *, cwd: Path, env: Mapping[str, str], output: Path) -> None:
        """Start it in a session of its own, which no Ctrl-C reaches; what it runs prints to the file `output`."""
        with output.open("ab") as stream:
            self._process = subprocess.Popen(  # noqa: S603 - ours
                [sys.executable, "-I", __file__, json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
                text=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the leash, the parent of its command."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Exit code of the command; None while it runs."""
        return self._process.poll()

    def end(self, *, cleaned: bool = False) -> None:
        """Have it interrupt its command and, unless all is `cleaned` already, clean up; wait for that."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            try:
                if cleaned:
                    pipe.write(_DONE)
                pipe.close()
            except BrokenPipeError:  # it has ended with its command
                pass
        self._process.wait()


def main(order: Order, pipe: IO[str]) -> int:
    """Run the command of `order` until it ends or the pipe closes, in which case clean up; return its exit code."""
    closed = threading.Event()
    cleaned = threading.Event()

    def follow() -> None:
        for line in pipe:
            if line == _DONE:
                cleaned.set()
        closed.set()

    if order["run"]:
        code = _run(order, follow)
    else:
        follow()
        code = 0
    if closed.is_set() and not cleaned.is_set():
        for step in order["clean"]:
            subprocess.run(step, stdin=subprocess.DEVNULL, check=False)  # noqa: S603 - the target's
    return code if code >= 0 else 128 - code


def _run(order: Order, follow: Callable[[], None]) -> int:
    """Run the command until it ends, or until `follow` returns and it is interrupted."""
    child = subprocess.Popen(order["run"], stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - the target's

    def interrupt() -> None:
        follow()
        _interrupt(child, order["grace"])

    threading.Thread(target=interrupt, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGINT))
    return child.wait()


def _interrupt(child: subprocess.Popen[bytes], grace: float) -> None:
    child.send_signal(signal.SIGINT)
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.stdin))
