"""Programs forked from a process that has imported what they need: a start costs what it does, not what it imports.

Run by its path this file is that process, the parent of them all: it reads one order a line and answers each with a
line, on a socket for each who sends any. It has no threads, so what it forks is as good as new. The tests hold on to it
by `WarmParent`.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STILL_RUNNING = -1
LOOK = 2.0
"""Seconds after which a parent that is shared looks whether its socket is still there, and ends if it is not."""
ALONE = 600.0
"""Seconds after which it ends where nobody is connected."""


class WarmParent:
    """The tests' end of the parent process; it is started by the first program and may be closed twice."""

    def __init__(self, modules: Sequence[str], env: Mapping[str, str], shared: str = "") -> None:
        """`modules` are imported once; `env` is what the parent itself is given.

        One that is `shared`, by the path of its socket, serves all processes that name it, until the path is gone.
        """
        self._command = [sys.executable, "-P", str(Path(__file__))]
        self._modules = list(modules)
        self._env = dict(env)
        self._shared = shared
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()

    def start(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, script: str = ""
    ) -> Forked:
        """Fork a program that calls `main` of the first module, or runs the Python of `script` in place of that.

        What it prints is added to the file `log`.
        """
        order = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), "log": str(log), "script": script}
        return Forked(self, self.order(order))

    def order(self, order: dict[str, Any]) -> int:
        """Return the answer to one order: the process id of a start; the wait status of an end, or STILL_RUNNING."""
        with self._lock:
            if self._connection is None:
                self._connection = self._joined() if self._shared else self._own()
            self._connection.sendall(f"{json.dumps(order)}\n".encode())
            answer = b""
            while not answer.endswith(b"\n"):
                piece = self._connection.recv(64)
                assert piece, "the warm parent has ended; its standard error says why"
                answer += piece
            return int(answer)

    def _own(self) -> socket.socket:
        """Start a parent that nobody else knows."""
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [*self._command, str(number), *self._modules], env=self._env, pass_fds=[number]
            )
        return ours

    def _joined(self) -> socket.socket:
        """Connect to the one that all share, and start it where there is none."""
        with open(f"{self._shared}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            while True:
                connection = socket.socket(socket.AF_UNIX)
                try:
                    connection.connect(self._shared)
                except (FileNotFoundError, ConnectionRefusedError):
                    connection.close()
                else:
                    return connection
                listener = socket.socket(socket.AF_UNIX)
                with listener:
                    Path(self._shared).unlink(missing_ok=True)
                    listener.bind(self._shared)
                    listener.listen(32)
                    number = listener.fileno()
                    started = subprocess.Popen(
                        [*self._command, str(number), self._shared, *self._modules],
                        env=self._env,
                        pass_fds=[number],
                        start_new_session=True,  # Ctrl-C is for pytest
                    )
                    started.returncode = 0  # nobody waits for it

    def close(self) -> None:
        """Leave it, which ends what it has forked for this process and nobody has waited for."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.wait()
            self._process = None


@dataclass
class Forked:
    """A forked program, with the methods of `subprocess.Popen` that the tests use."""

    parent: WarmParent
    pid: int
    returncode: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        with self._lock:  # the parent has a process to wait for only once
            if self.returncode is None and (status := self.parent.order({"poll": self.pid})) != STILL_RUNNING:
                self.returncode = os.waitstatus_to_exitcode(status)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(0.02)
        return code

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)  # one that has ended since keeps its id until it is polled


class Server:
    """The parent process: it forks for whoever is connected, and ends what it has forked for one who has left."""

    def __init__(self, program: Any, listener: socket.socket | None, connections: Sequence[socket.socket]) -> None:
        self._program, self._listener = program, listener
        self._children: dict[socket.socket, set[int]] = {connection: set() for connection in connections}
        self._left = time.monotonic()

    def serve(self, path: str) -> int:
        """Answer orders until nobody sends any more: all have left, or the socket at `path` is gone.

        In a process that was forked this returns the exit code of its program.
        """
        while self._children or (self._listener and time.monotonic() < self._left + ALONE):
            ready, _, _ = select.select([*self._children, *filter(None, [self._listener])], [], [], LOOK)
            for one in ready:
                if one is self._listener:
                    self._children[one.accept()[0]] = set()
                elif order := self._order(one):
                    if (code := self._answer(one, order)) is not None:
                        return code
                else:
                    self._leave(one)
            if self._listener and not os.path.exists(path):
                break
        for connection in list(self._children):
            self._leave(connection)
        return 0

    def _order(self, connection: socket.socket) -> dict[str, Any] | None:
        """Return the next order, for the answer to which its sender waits; None from one who has left."""
        line = b""
        while not line.endswith(b"\n"):
            piece = connection.recv(1 << 16)
            if not piece:
                return None
            line += piece
        return dict(json.loads(line))

    def _answer(self, connection: socket.socket, order: dict[str, Any]) -> int | None:
        children = self._children[connection]
        if "poll" in order:
            ended, answer = os.waitpid(order["poll"], os.WNOHANG)
            if ended:
                children.discard(ended)
            else:
                answer = STILL_RUNNING
        else:
            answer = os.fork()
            if answer == 0:
                for each in filter(None, [*self._children, self._listener]):
                    each.close()
                return self._run(order)
            children.add(answer)
        with contextlib.suppress(OSError):  # who has left is seen next
            connection.sendall(f"{answer}\n".encode())
        return None

    def _run(self, order: dict[str, Any]) -> int:
        _become(order)
        if order["script"]:
            exec(order["script"], {"__name__": "__main__"})
            return 0
        return int(self._program.main(order["arguments"]))

    def _leave(self, connection: socket.socket) -> None:
        for child in self._children.pop(connection):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        connection.close()
        self._left = time.monotonic()


def main(number: str, *names: str) -> int:
    """Import the modules, and serve the socket of that number; if a path comes before the modules, whoever connects.

    Returns the exit code; in a process that was forked that of its program.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which ends this process
    own = socket.socket(fileno=int(number))
    own.set_inheritable(False)
    shared, modules = (names[0], names[1:]) if "/" in names[0] else ("", names)
    program, *_ = [importlib.import_module(name) for name in modules]
    assert threading.active_count() == 1, "a fork has one thread, whatever the others were doing"
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every object
    return Server(program, own if shared else None, [] if shared else [own]).serve(shared)


def _become(order: dict[str, Any]) -> None:
    """Turn the forked process into what a new one with this environment, folder and output would be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(order["log"], "ab") as log:
        for number in (sys.stdout.fileno(), sys.stderr.fileno()):
            os.dup2(log.fileno(), number)
    sys.argv[1:] = order["arguments"]
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])


if __name__ == "__main__":
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout):
        os.dup2(nothing, stream.fileno())
    os.close(nothing)
    sys.exit(main(*sys.argv[1:]))
