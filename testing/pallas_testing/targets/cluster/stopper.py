"""Lets nothing else in a container run until its own standard input ends (ptrace(2)).

It runs inside the container, as its user and with no capability, handed to its Python as text. SIGSTOP is enough but
for the first process of a container, to which the kernel passes none from within; that one is traced, as a debugger
does, unless the argument is `shared`: then it is the pod's, and not of the container. When this process ends, however
it does, the kernel lets what it has traced run on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

STOPPED = "stopped"
"""The line that says that all stand still."""
SHARED = "shared"
"""The argument where the containers of the pod share the processes' namespace."""
REFUSED = "no process may trace another one here"
"""How the refusal of the kernel begins."""
_SEIZE = 0x4206
_INTERRUPT = 0x4207
_ALL = 0x40000000
_FIRST = 1


def main(shared: bool) -> None:
    """Stop the others, say so, and wait."""
    others = [pid for pid in _others() if not (shared and pid == _FIRST)]
    for pid in others:
        if pid == _FIRST:
            _trace(pid)
        else:
            _send(pid, signal.SIGSTOP)
    print(STOPPED, flush=True)  # noqa: T201 - for the test that started it
    sys.stdin.read()
    for pid in others:
        if pid != _FIRST:
            _send(pid, signal.SIGCONT)


def _others() -> Iterator[int]:
    """Yield the processes of this user but this one."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError):  # it has ended meanwhile
            if folder.stat().st_uid == os.getuid() and int(folder.name) != os.getpid():
                yield int(folder.name)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _trace(pid: int) -> None:
    """Stop each thread of a process; those that one starts meanwhile are found with the next look."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    stopped: set[int] = set()
    while new := {int(name) for name in os.listdir(f"/proc/{pid}/task")} - stopped:
        for thread in new:
            if any(ptrace(request, thread, None, None) for request in (_SEIZE, _INTERRUPT)):
                error = ctypes.get_errno()
                if error == errno.ESRCH:  # it has ended meanwhile
                    continue
                raise SystemExit(f"{REFUSED}: {os.strerror(error)}")
            os.waitpid(thread, _ALL)
        stopped |= new


if __name__ == "__main__":
    main(SHARED in sys.argv)
