"""How long after an agent died the registry says so: 20 that are killed, 20 that are stopped (SIGSTOP).

Every agent is a process of its own; each dies at a moment of its own within one interval, and the time runs until the
registry's event stream tells its new state. The bounds are those of the design: a refused connection is a first failure
and two quick confirmations, a silent one has to wait for three deadlines.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.method import fleet, servers
from benchmarks.method.report import Figure, at_most
from benchmarks.method.side_by_side import LOAD, Effort, spread

KILLS, INTERVAL = 20, 5.0
DEATHS = (("killed", signal.SIGKILL, 6.0), ("stopped", signal.SIGSTOP, 11.0))


def measure(effort: Effort) -> Iterator[Figure]:
    kills = 2 if effort.quick else KILLS
    agents = [f"{how}{number}" for how, _, _ in DEATHS for number in range(kills)]
    with ExitStack() as stack:
        ports = {agent: servers.free_port() for agent in agents}
        running = {agent: stack.enter_context(_agent(ports[agent])) for agent in agents}
        for port in ports.values():
            servers.until(lambda port=port: servers.takes(port))  # type: ignore[misc]
        where = {agent: f"127.0.0.1:{port}" for agent, port in ports.items()}
        registry = stack.enter_context(fleet.registry(where, INTERVAL))
        registry.settled(ok=len(agents))
        seen = _watch(registry.url)
        chance = random.Random(2026)
        for how, number, most in DEATHS:
            doomed = sorted((chance.uniform(0, INTERVAL), agent) for agent in agents if agent.startswith(how))
            died = _kill(doomed, running, number)
            servers.until(lambda died=died: died.keys() <= seen.keys())  # type: ignore[misc]
            took = sorted(seen[agent] - died[agent] for agent in died)
            spent = spread(took)
            detail = "seconds: " + " ".join(f"{one:.1f}" for one in took)
            yield Figure(f"last of {len(took)} that were {how} is `error`", spread([took[-1]]), at_most(most), "s")
            yield Figure(f"one that was {how} is `error`", spent, None, "s", detail=detail)


@contextmanager
def _agent(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own on `port` of loopback, ended also when it is stopped."""
    command = [sys.executable, "-m", "benchmarks.method.fakes", str(port), "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.process(command, Path(folder), fleet.environment(), core=LOAD) as running,
    ):
        try:
            yield running
        finally:
            running.send_signal(signal.SIGCONT)


def _kill(doomed: list[tuple[float, str]], running: dict[str, subprocess.Popen[bytes]], how: int) -> dict[str, float]:
    """Send the signal to each agent after its seconds; when each of them got it."""
    began = time.monotonic()
    died = {}
    for after, agent in doomed:
        time.sleep(max(0.0, began + after - time.monotonic()))
        running[agent].send_signal(how)
        died[agent] = time.monotonic()
    return died


def _watch(url: str) -> dict[str, float]:
    """When each agent was first told to be in `error`; filled by a thread that reads the registry's events."""
    seen: dict[str, float] = {}
    stream = urllib.request.urlopen(f"{url}/events", timeout=servers.PATIENCE)

    def read() -> None:
        for line in stream:
            if line.startswith(b"data:") and (change := json.loads(line[5:])).get("new") == "error":
                seen.setdefault(change["agent"], time.monotonic())

    threading.Thread(target=read, daemon=True).start()
    return seen
