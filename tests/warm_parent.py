"""Programs forked from a process that has imported what they need: a start costs what it does, not what it imports.

Run by its path this file is that process, the parent of them all: it reads one order a line and answers each with a
line. It has no threads, so what it forks is as good as new. The tests hold on to it by `WarmParent`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

STILL_RUNNING = -1


class WarmParent:
    """The tests' end of the parent process; it is started by the first program and may be closed twice."""

    def __init__(self, modules: Sequence[str], env: Mapping[str, str]) -> None:
        """`modules` are imported once; `env` is what the parent itself is given."""
        self._command = [sys.executable, "-P", str(Path(__file__)), *modules]
        self._env = dict(env)
        self._process: subprocess.Popen[str] | None = None
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
            if self._process is None:
                self._process = subprocess.Popen(
                    self._command, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{json.dumps(order)}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, "the warm parent has ended; its standard error says why"
            return int(answer)

    def close(self) -> None:
        """End it, which ends what it has forked and nobody has waited for."""
        if self._process is not None:
            self._process.communicate()
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


def serve(modules: Sequence[str], orders: TextIO, answers: TextIO) -> int:
    """Fork a program for each order to start one, until there are no more; return the exit code.

    In the process that was forked this is the exit code of its `main`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which ends this process
    program, *_ = [importlib.import_module(name) for name in modules]
    assert threading.active_count() == 1, "a fork has one thread, whatever the others were doing"
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every object
    children: set[int] = set()
    for line in orders:
        order = json.loads(line)
        if "poll" in order:
            ended, answer = os.waitpid(order["poll"], os.WNOHANG)
            if ended:
                children.discard(ended)
            else:
                answer = STILL_RUNNING
        else:
            answer = os.fork()
            if answer == 0:
                orders.close()
                answers.close()
                _become(order)
                if order["script"]:
                    exec(order["script"], {"__name__": "__main__"})
                    return 0
                return int(program.main(order["arguments"]))
            children.add(answer)
        answers.write(f"{answer}\n")
        answers.flush()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return 0


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
    commands = os.fdopen(os.dup(sys.stdin.fileno()))
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (sys.stdin.fileno(), sys.stdout.fileno()):
        os.dup2(nothing, number)
    os.close(nothing)
    sys.exit(serve(sys.argv[1:], commands, replies))
