"""Processes that stand still, and run on. Never all of this machine's: which those would be is asked of nobody here."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_testing.targets.cluster import stopper

ECHO = """
import ctypes, sys, threading
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1))  # whoever may trace it, where Yama asks (prctl(2))
threading.Thread(target=threading.Event().wait, daemon=True).start()
for line in sys.stdin: print(line, end="", flush=True)
"""
STOPPING = """
import sys
from pallas_testing.targets.cluster import stopper
pid = int(sys.argv[1])
stopper._FIRST = pid if sys.argv[2] == "traced" else 0
stopper._others = lambda: [pid]
stopper.main(False)
"""


@pytest.fixture
def echo() -> Iterator[subprocess.Popen[str]]:
    """Yield a process with two threads that repeats lines."""
    with subprocess.Popen([sys.executable, "-c", ECHO], stdin=-1, stdout=-1, text=True) as process:
        yield process
        process.kill()


def ask(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def states(pid: int) -> set[str]:
    """Return the state of each thread of a process (proc(5))."""
    return {path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")}


@pytest.mark.parametrize(("how", "state"), [("traced", "t"), ("signalled", "T")])
def test_every_thread_stands_still_until_the_input_ends(echo: subprocess.Popen[str], how: str, state: str) -> None:
    assert ask(echo, "before") == "before"
    command = [sys.executable, "-c", STOPPING, str(echo.pid), how]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout
        assert process.stdout.readline().strip() == stopper.STOPPED
        os.waitid(os.P_PID, echo.pid, os.WSTOPPED | os.WNOWAIT) if how == "signalled" else None
        assert states(echo.pid) == {state}
        process.communicate()
    assert ask(echo, "after") == "after"


def test_a_kernel_that_lets_nobody_trace_is_told_from_one_that_does() -> None:
    with pytest.raises(SystemExit, match=f"^{stopper.REFUSED}: Operation not permitted"):  # nobody traces itself
        stopper._trace(os.getpid())


def test_the_first_process_of_a_shared_namespace_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(stopper, "_others", lambda: [1, 7])
    monkeypatch.setattr(stopper, "_send", lambda *signal: sent.append(signal))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    stopper.main(True)
    assert sent == [(7, signal.SIGSTOP), (7, signal.SIGCONT)]
    assert capsys.readouterr().out == f"{stopper.STOPPED}\n"


def test_the_others_are_those_of_this_user() -> None:
    others = set(stopper._others())
    assert os.getpid() not in others
    assert os.getppid() in others
    stopper._send(2**22 + 1, signal.SIGCONT)  # one that has ended
