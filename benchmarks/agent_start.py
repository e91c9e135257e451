"""From nothing to the first answer, and the memory it takes: an agent against `fast-agent serve`, and its container.

A process is asked from when it is started, every 20 ms, until it answers `server/discover`. A container is held against
the time that the import of fast-agent alone takes in the same image; what `docker run` itself takes counts for neither.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.method import agents, servers
from benchmarks.method.load import Missing
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import LOAD, SERVER, Effort, Sample, compare
from pallas_contract import __version__, names

IMAGE = f"pallas-agent:{__version__}"
IMPORT = "from fast_agent import FastAgent"
Command = tuple[list[str], dict[str, str]]


def measure(effort: Effort) -> Iterator[Figure]:
    os.sched_setaffinity(0, {LOAD})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        place = agents.project(folder, "connection")
        ours = partial(started, place, agents.our_command, "send_message")
        stock = partial(started, place, lambda port: agents.stock_command(port, "connection"), agents.NAME)
        found = compare(lambda: ours()[0], lambda: stock()[0], effort)
        yield ratio("process start to first answer: agent / fast-agent serve", found, at_most(0.8), "s")
        found = compare(lambda: ours()[1], lambda: stock()[1], Effort(rounds=min(3, effort.rounds)))
        yield ratio("resident memory after a call: agent / fast-agent serve", found, at_most(0.9), "MB")
        yield _containers(place, effort)


def started(place: Path, command: Callable[[int], Command], tool: str) -> tuple[Sample, Sample]:
    """Seconds to the first answer, and megabytes held after the first call of `tool`."""
    port = servers.free_port()
    line, env = command(port)
    url = f"http://127.0.0.1:{port}{names.MCP_PATH}"
    begun = time.perf_counter()
    with servers.process(line, place, env) as running:
        servers.until(lambda: _answers(url))
        start = Sample(time.perf_counter() - begun, servers.cpu_seconds(running.pid))
        agents.ask(url, "tools/call", {"name": tool, "arguments": agents.HI}, tool)
        return start, Sample(servers.resident(running.pid) / 1e6)


def _containers(place: Path, effort: Effort) -> Figure:
    if not shutil.which("docker") or _docker("image", "inspect", IMAGE).returncode:
        raise Missing(f"{IMAGE}: make images")
    empty = statistics.median(_run("-c", "") for _ in range(3))
    found = compare(lambda: Sample(_contained(place) - empty), lambda: Sample(_run("-P", "-c", IMPORT) - empty), effort)
    return ratio("container start to first answer: agent / import of fast_agent in its image", found, at_most(2), "s")


def _contained(place: Path) -> float:
    """Seconds from `docker run` of an agent, as hardened as in a fleet, to its first answer."""
    port = servers.free_port()
    hard = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    where = ["--publish", f"127.0.0.1:{port}:{names.CONTAINER_PORT}", "--volume", f"{place}:{names.PROJECT_DIR}:ro"]
    bind = ["--env", f"{names.ENV_BIND}=0.0.0.0:{names.CONTAINER_PORT}"]
    runtime = ["-P", "-m", "pallas_agent_runtime", "--agent", agents.NAME]
    begun = time.perf_counter()
    made = _docker("run", "--detach", "--cpuset-cpus", str(SERVER), *hard, *where, *bind, IMAGE, *runtime, check=True)
    try:
        servers.until(lambda: _answers(f"http://127.0.0.1:{port}{names.MCP_PATH}"))
        return time.perf_counter() - begun
    finally:
        _docker("rm", "--force", made.stdout.strip(), check=True)


def _run(*python: str) -> float:
    """Seconds of a container that runs Python and ends."""
    begun = time.perf_counter()
    _docker("run", "--rm", "--cpuset-cpus", str(SERVER), IMAGE, *python, check=True)
    return time.perf_counter() - begun


def _docker(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], check=check, capture_output=True, text=True)


def _answers(url: str) -> bool:
    try:
        return b"result" in agents.ask(url, "server/discover", {})
    except OSError:
        return False
