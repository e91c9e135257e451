"""From nothing to the first answer, and the memory it takes: an agent against `fast-agent serve`, and its container.

A process is asked from when it is started, every 20 ms, until it answers `server/discover`. A container is held against
the time that the import of fast-agent alone takes in the same image; what `docker run` itself takes counts for neither.
Memory is that of both in the agent's image, where nothing is installed but what an agent needs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.method import agents, servers
from benchmarks.method.load import Missing
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import LOAD, SERVER, Effort, Sample, compare
from pallas_contract import __version__, names

IMAGE = f"pallas-agent:{__version__}"
IMPORT = "from fast_agent import FastAgent"
OURS = ("python", "-P", "-m", "pallas_agent_runtime", "--agent", agents.NAME)
STOCK = ("fast-agent", *agents.stock_arguments(names.CONTAINER_PORT, "connection", "0.0.0.0"))
Command = tuple[list[str], dict[str, str]]


def measure(effort: Effort) -> Iterator[Figure]:
    os.sched_setaffinity(0, {LOAD})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        place = agents.project(folder, "connection")
        ours = partial(started, place, agents.our_command)
        stock = partial(started, place, lambda port: agents.stock_command(port, "connection"))
        found = compare(ours, stock, effort)
        yield ratio("process start to first answer: agent / fast-agent serve", found, at_most(0.5), "s")
        if not shutil.which("docker") or _docker("image", "inspect", IMAGE).returncode:
            raise Missing(f"{IMAGE}: make images")
        yield _containers(place, effort)
        yield _memory(place, effort)


def started(place: Path, command: Callable[[int], Command]) -> Sample:
    """Seconds from the start of a process to its first answer."""
    port = servers.free_port()
    line, env = command(port)
    begun = time.perf_counter()
    with servers.process(line, place, env) as running:
        servers.until(lambda: _answers(_url(port)))
        return Sample(time.perf_counter() - begun, servers.cpu_seconds(running.pid))


def _containers(place: Path, effort: Effort) -> Figure:
    empty = statistics.median(_run("-c", "") for _ in range(3))

    def ours() -> Sample:
        begun = time.perf_counter()
        with _container(place, OURS):
            return Sample(time.perf_counter() - begun - empty)

    found = compare(ours, lambda: Sample(_run("-P", "-c", IMPORT) - empty), effort)
    return ratio("container start to first answer: agent / import of fast_agent in its image", found, at_most(0.5), "s")


def _memory(place: Path, effort: Effort) -> Figure:
    def held(command: Sequence[str], tool: str) -> Sample:
        with _container(place, command) as (name, port):
            said = agents.ask(_url(port), "tools/call", {"name": tool, "arguments": agents.HI}, tool)
            if agents.SAID_HI.encode() not in said:
                raise RuntimeError(f"{command[0]} answered {said[:200]!r}")
            pid = _docker("inspect", "--format", "{{.State.Pid}}", name, check=True).stdout
            return Sample(servers.resident(int(pid)) / 1e6)

    few = Effort(rounds=min(3, effort.rounds))
    found = compare(lambda: held(OURS, "send_message"), lambda: held(STOCK, agents.NAME), few)
    return ratio("resident memory after a call, in the image: agent / fast-agent serve", found, at_most(0.7), "MB")


@contextmanager
def _container(place: Path, command: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Name and published port of a container, as hardened as in a fleet, once it has answered."""
    port = servers.free_port()
    hard = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    where = ["--publish", f"127.0.0.1:{port}:{names.CONTAINER_PORT}", "--volume", f"{place}:{names.PROJECT_DIR}:ro"]
    bind = ["--env", f"{names.ENV_BIND}=0.0.0.0:{names.CONTAINER_PORT}", "--workdir", names.PROJECT_DIR]
    bind += ["--env", "FAST_AGENT_HOME=/tmp"]  # fast-agent writes beside the project otherwise, where nobody may
    pinned = ["--cpuset-cpus", str(SERVER), "--entrypoint", command[0]]
    made = _docker("run", "--detach", *pinned, *hard, *where, *bind, IMAGE, *command[1:], check=True)
    name = made.stdout.strip()
    try:
        servers.until(lambda: _answers(_url(port)))
        yield name, port
    finally:
        _docker("rm", "--force", name, check=True)


def _run(*python: str) -> float:
    """Seconds of a container that runs Python and ends."""
    begun = time.perf_counter()
    _docker("run", "--rm", "--cpuset-cpus", str(SERVER), IMAGE, *python, check=True)
    return time.perf_counter() - begun


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}{names.MCP_PATH}"


def _docker(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["docker", *arguments], check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"docker {arguments[0]}: {done.stderr.strip()}")
    return done


def _answers(url: str) -> bool:
    try:
        return b"result" in agents.ask(url, "server/discover", {})
    except OSError:
        return False
