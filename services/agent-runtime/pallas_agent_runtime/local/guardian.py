"""Ends what a fleet of processes or an agent has left behind, also when `pallas` itself was killed; Linux only.

The kernel ends the members with their supervisor (child.dies_with), but not what these have started: an MCP server on
stdio has a session of its own. All of them have a variable, and that is how they are found, whoever their parent is by
then: it is inherited, but by servers on stdio, which get it from engine/patches. This file is a program too, which
waits for the end of its standard input: it imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

RUN = "PALLAS_RUN"
"""Variable of every member: the run of the fleet, a slash, and the member's name; `names.ENV_RUN`, not imported."""
_ROUNDS = 100
_PAUSE = 0.02
"""Seconds between two rounds: what was told to end may have started something just before."""


@contextlib.contextmanager
def watching() -> Iterator[str]:
    """Yield the name of a run; when this process ends, in whatever way, so does all that has it in its environment."""
    run = os.urandom(8).hex()
    if sys.platform != "linux":
        yield run
        return
    command = [sys.executable, "-I", "-S", __file__, run]
    environ = {key: value for key, value in os.environ.items() if key != RUN}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environ, start_new_session=True) as guard:  # noqa: S603
        if guard.stdin:  # a copy of this process, as in a pool of processes of the user's, would keep the pipe open
            os.register_at_fork(after_in_child=guard.stdin.close)
        yield run


@contextlib.contextmanager
def watching_agent(name: str) -> Iterator[None]:
    """Watch over this process, an agent by itself, where no init process does.

    A container ends with its first process, which is the agent or its parent, and systemd ends all that a service has
    started.
    """
    if 1 in (os.getpid(), os.getppid()):
        yield
        return
    with watching() as run:
        os.environ[RUN] = f"{run}/{name}"
        try:
            yield
        finally:
            os.environ.pop(RUN, None)


def end(mark: str) -> None:
    """Kill every process whose `RUN` is `mark`, until there is none; with a slash at its end, that of any member."""
    before: list[int] = [os.getpid()]
    for _ in range(_ROUNDS):
        pids = list(_marked(f"{RUN}={mark}".encode()))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not pids and not before:  # looked twice: in the middle of an exec a process shows no variables
            return
        before = pids
        time.sleep(_PAUSE)


def _marked(mark: bytes) -> Iterator[int]:
    own_pid = str(os.getpid())
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid == own_pid:
            continue
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # another user's, or gone
            variables = file.read().split(b"\0")
            # A whole value, or up to the slash: the name of one member may begin with that of another.
            if mark in variables or (mark.endswith(b"/") and any(line.startswith(mark) for line in variables)):
                yield int(pid)


def _main(run: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # it goes when all others have gone
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end(f"{run}/")


if __name__ == "__main__":
    _main(sys.argv[1])
