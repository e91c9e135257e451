"""Servers under measurement: started on their core, watched through /proc, ended by their process id."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.method.side_by_side import SERVER

PATIENCE = 120.0
"""Seconds to wait for anything that must come."""
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def process(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None, core: int | None = SERVER
) -> Iterator[subprocess.Popen[bytes]]:
    """`command` running in `folder` on `core` (None: on all), its output in a log there; ended at the end."""
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    with (folder / f"{Path(command[0]).name}.log").open("ab") as log:
        running = subprocess.Popen([*pinned, *command], cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


@contextmanager
def listening(
    command: Sequence[str], folder: Path, port: int, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The same, from when it takes connections on `port`."""
    with process(command, folder, env) as running:
        until(lambda: takes(port) or _alive(running, command))
        yield running


def takes(port: int, address: str = "127.0.0.1") -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def _alive(running: subprocess.Popen[bytes], command: Sequence[str]) -> bool:
    if running.poll() is not None:
        raise RuntimeError(f"{' '.join(command)} ended with {running.returncode}")
    return False


def until(true: Callable[[], bool], pause: float = 0.02, patience: float = PATIENCE) -> None:
    """Ask again and again; `pause` and `patience` are in seconds."""
    deadline = time.monotonic() + patience
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing happened in time")
        time.sleep(pause)


def cpu_seconds(pid: int) -> float:
    """CPU-seconds of a process and of all below it, also of those that have ended and were waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS + sum(cpu_seconds(child) for child in _children(pid))


def resident(pid: int) -> int:
    """Bytes of memory that a process holds (RSS), what it shares with others included."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:")) * 1024


def proportional(pid: int) -> dict[int, int]:
    """Bytes of a process and of all below it, by process id: of what several share each has its part (PSS)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024
    below = {process: held for child in _children(pid) for process, held in proportional(child).items()}
    return {pid: own, **below}


def _children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
