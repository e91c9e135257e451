"""The warm parent: it imports a program once, and forks a process of it for each message on its socket.

It has one thread, no event loop and nothing open but its socket, so what it forks is as good as new. A message brings
what a process shall have open; the process itself then reads its order, and runs once the supervisor knows of it. Its
parent is the supervisor, as of any other member: this process may die and takes nobody along.

Run as `python -m pallas_agent_runtime.local.warm.forker MODULE ROOM`: the module of the program, and text that leaves
room for the command lines of what is forked (proc_title).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pallas_agent_runtime import unused_imports
from pallas_agent_runtime.importing import gc_tuning
from pallas_agent_runtime.local import guardian
from pallas_agent_runtime.local.child import dies_with
from pallas_agent_runtime.local.warm import proc_title
from pallas_agent_runtime.local.warm.imports import Imports
from pallas_contract import names
from pallas_service import compiled_texts, deferred_models

MESSAGE = b"fork"
GO = b"go"
MOST_FDS = 3
"""A connection to the supervisor, the output, and the socket to listen on where there is one."""


class Program(Protocol):
    """A module that is imported once for many processes."""

    def warm(self) -> None:
        """Import what any of them will need."""

    def main(self, arguments: Sequence[str], settle: Callable[[], None]) -> int:
        """Run, and return the exit code; `settle` is called once the environment is complete.

        It does not return where the process has to start anew, alone.
        """


@dataclass(frozen=True, slots=True)
class Order:
    """A process that is wanted: `command` would start it alone, `arguments` is what of it is the program's."""

    command: list[str]
    arguments: list[str]
    cwd: str
    env: dict[str, str]


def main(module: str) -> int:
    """Return the exit code: of this process, or in a fork that of the program."""
    supervisor = os.getppid()
    # Not closed by what the imports raise: the supervisor would hear of the end before the reason.
    messages = socket.socket(fileno=int(os.environ.pop(names.ENV_LISTEN_FD)))
    messages.set_inheritable(False)
    os.environ.pop(guardian.RUN, None)  # each fork has its own
    imports = Imports()
    with imports.watched():
        program: Program = importlib.import_module(module)
        program.warm()
    compiled_texts.end()
    if threads := len(os.listdir("/proc/self/task")) - 1:
        sys.stderr.write(f"the imports have started {threads} threads, and none of them would be in a fork\n")
        return 1
    gc.freeze()  # a collection in a fork would write to, and so copy, every object
    with messages:
        order = _next_order(messages, supervisor)
    return 0 if order is None else program.main(order.arguments, partial(_settle, order, imports))


def _next_order(messages: socket.socket, supervisor: int) -> Order | None:
    """Fork for each message; return its order in each fork, and None in this process once nobody can send any more."""
    while True:
        message, fds, _, _ = socket.recv_fds(messages, len(MESSAGE), MOST_FDS)
        if not message:
            return None
        if _forked():
            try:
                return _order(supervisor, *fds)
            except Exception:  # the supervisor starts it alone then, and hears the reason from that one
                os._exit(1)
        for fd in fds:
            os.close(fd)


def _forked() -> bool:
    """Return whether this is the new process; the supervisor has adopted it (prctl(2), PR_SET_CHILD_SUBREAPER).

    Only an orphan is adopted, so there is a process in between, which ends at once.
    """
    orphaned, has_parent = os.pipe()
    between = os.fork()
    if between:
        os.waitpid(between, 0)
    else:
        try:
            last = os.fork()
        except OSError:
            os._exit(1)
        if last:
            os._exit(0)
    os.close(has_parent)
    if not between:
        os.read(orphaned, 1)  # to its end: the one in between is gone, and was waited for
    os.close(orphaned)
    return not between


def _order(supervisor: int, connection: int, output: int, listener: int | None = None) -> Order:
    """Make of this fork what a new process would be, and tell the supervisor; return what it shall run."""
    if arrange := dies_with(supervisor, signal.SIGKILL):
        arrange()
    os.setpgid(0, 0)
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    with socket.socket(fileno=connection) as answers, answers.makefile("rb") as orders:
        order = Order(**json.loads(orders.readline()))
        if listener is not None:
            order.env[names.ENV_LISTEN_FD] = str(listener)
        _become(order)
        answers.sendall(str(os.getpid()).encode())
        if orders.read(len(GO)) != GO:  # it has given up waiting
            os._exit(1)
    return order


def _become(order: Order) -> None:
    os.chdir(order.cwd)
    os.environ.clear()
    os.environ.update(order.env)
    if mark := order.env.get(guardian.RUN):
        proc_title.set_variable(guardian.RUN, mark)
    proc_title.set_command_line(order.command)
    sys.orig_argv[:] = order.command
    sys.argv[1:] = order.arguments
    importlib.invalidate_caches()  # files may have come since


def _settle(order: Order, imports: Imports) -> None:
    """Go on, unless in this environment the imports would have been others: then begin anew, alone."""
    if imports.suit(os.environ):
        imports.take_over()
        return
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and what is ignored stays so; as subprocess does
    if fd := order.env.get(names.ENV_LISTEN_FD):
        os.set_inheritable(int(fd), True)
    os.execve(order.command[0], order.command, order.env)  # noqa: S606 - the same program


if __name__ == "__main__":
    gc_tuning.seldom()
    compiled_texts.begin()
    deferred_models.defer()
    unused_imports.defer()
    sys.exit(main(sys.argv[1]))
