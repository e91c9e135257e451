"""A fleet of twenty agents as processes: until all are ready, against what their starts must cost.

The least possible is the CPU time of as many single starts over the cores of the machine; the registry and the
supervisor come on top and are ours to pay.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.method import agents, servers
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import CORES, Effort, Sample, compare
from pallas_contract import names


def measure(effort: Effort) -> Iterator[Figure]:
    size = 2 if effort.quick else 20
    with tempfile.TemporaryDirectory() as name:
        place = agents.project(Path(name), "connection")
        fleet = Fleet(place, size, [servers.free_port() for _ in range(size + 1)])
        fleet.write()
        once = Effort(rounds=min(3, effort.rounds))
        found = compare(fleet.started, fleet.least, once)
        yield ratio(
            f"{size} agents, all ready / {size} x CPU of one start / {len(CORES)} cores", found, at_most(2), "s"
        )


@dataclass(frozen=True, slots=True)
class Fleet:
    """`size` equal agents in the project `place`; the last of `ports` is the registry's."""

    place: Path
    size: int
    ports: list[int]

    def write(self) -> None:
        own = "".join(f"  hello_{i}: {{card: hello.md, port: {self.ports[i]}}}\n" for i in range(self.size))
        (self.place / "agents.yaml").write_text(f"name: bench\nregistry_port: {self.ports[-1]}\nagents:\n{own}")

    def started(self) -> Sample:
        """Seconds until every agent and the registry is ready."""
        return Sample(self._until_ready([], self.ports).value)

    def least(self) -> Sample:
        """Seconds that as many starts as one costs would take on all cores."""
        one = self._until_ready(["--agent", "hello_0"], self.ports[:1])
        return Sample((one.cpu or 0) * self.size)

    def _until_ready(self, arguments: list[str], ports: list[int]) -> Sample:
        """Seconds, and CPU-seconds per core."""
        command = [sys.executable, "-m", "pallas_agent_runtime", *arguments]
        begun = time.perf_counter()
        with servers.process(command, self.place, agents.environment(), core=None) as running:
            for port in ports:
                servers.until(partial(_ready, port), pause=0.1)
            return Sample(time.perf_counter() - begun, servers.cpu_seconds(running.pid) / len(os.sched_getaffinity(0)))


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{names.READY_PATH}", timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False
