"""What an agent has started ends with it, however that was killed: a real MCP server on stdio, which hears nothing.

The search for marked processes by itself is in test_child.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent_runtime.conftest import environment, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="a process tells its environment in /proc"),
]

MODULE = """
import os, time
from fast_agent import FastAgent

fast = FastAgent("it")

if os.fork() == 0:
    with open("copies", "a") as copies:
        copies.write(f"{os.getpid()}\\n")
    time.sleep(600)
    os._exit(0)


@fast.agent(name="it", instruction="x", servers=["deaf"], model="passthrough")
async def it() -> None: ...
"""
DEAF = """
import os, signal, sys, time

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
with open(sys.argv[1], "a") as pids:
    pids.write(f"{os.getpid()}\\n")
time.sleep(600)
"""
"""It answers nothing, reads no end of its input, and what it starts has a session of its own."""


class Started:
    """A `pallas` of one agent, and the processes of its server on stdio."""

    def __init__(self, folder: Path, toolkit: Any, *options: str) -> None:
        self._pids, self._copies = folder / "pids", folder / "copies"
        server = {"command": sys.executable, "args": ["deaf.py", str(self._pids)]}
        agent = {"module": "agents.it", "port": toolkit.free_port()}
        files = {
            "agents.yaml": {"name": "demo", "registry_port": toolkit.free_port(), "agents": {"it": agent}},
            "agents/it.py": MODULE,
            "deaf.py": DEAF,
            "fastagent.config.yaml": {"mcp": {"servers": {"deaf": server}}},
        }
        toolkit.write_files(folder, files)
        command = [sys.executable, "-m", "pallas_agent_runtime", *options]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def servers(self, count: int) -> list[int]:
        """Wait until `count` processes have been started; the last two of them."""
        pids = until(lambda: found if len(found := self._all()) == count else None)
        return pids[-2:]

    def _all(self) -> list[int]:
        return list(map(int, self._pids.read_text().split())) if self._pids.exists() else []

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pid in self._all():
            if b"deaf.py" in _command(pid):
                os.kill(pid, signal.SIGKILL)
        for pid in map(int, self._copies.read_text().split() if self._copies.exists() else ()):
            if b"pallas_agent_runtime" in _command(pid):
                os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()  # empty where nobody has reaped it yet
    except FileNotFoundError:
        return b""


def agent_of(servers: list[int]) -> int:
    """Return who has started the server that has started the other."""
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in servers}
    (agent,) = parents - set(servers)
    return agent


def wait_for_end(pids: list[int]) -> None:
    until(lambda: None if any(b"deaf.py" in _command(pid) for pid in pids) else True)


@pytest.fixture
def started(tmp_path: Path, toolkit: Any) -> Iterator[Callable[..., Started]]:
    begun: list[Started] = []

    def start(*options: str) -> Started:
        begun.append(Started(tmp_path, toolkit, *options))
        return begun[-1]

    yield start
    for fleet in begun:
        fleet.close()


def test_a_server_on_stdio_ends_with_an_agent_that_is_by_itself(started: Callable[..., Started]) -> None:
    """Also where a copy of the agent lives on: user code forks, as `ProcessPoolExecutor` does."""
    agent = started("--agent", "it")
    servers = agent.servers(2)
    agent.process.kill()
    wait_for_end(servers)


def test_a_server_on_stdio_ends_with_its_agent_and_with_the_fleet(started: Callable[..., Started]) -> None:
    fleet = started()
    servers = fleet.servers(2)
    os.kill(agent_of(servers), signal.SIGKILL)
    wait_for_end(servers)
    servers = fleet.servers(4)
    os.kill(fleet.process.pid, signal.SIGKILL)
    wait_for_end(servers)
