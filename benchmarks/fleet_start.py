"""A fleet of twenty agents as processes: until all are ready, against what their starts must cost.

The least possible is the CPU time of as many single starts over the cores of the machine; the registry and the
supervisor come on top and are ours to pay.
"""

from __future__ import annotations

import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
            f"{size} agents, all ready / {size} x CPU of one start / {len(CORES)} cores", found, at_most(0.3), "s"
        )


@dataclass(frozen=True, slots=True)
class Up:
    """A fleet, or one agent, that is ready: seconds it took, CPU-seconds it spent, and its first process."""

    seconds: float
    cpu: float
    pid: int


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
        """Seconds until every agent and the registry is ready; by CPU those that the work would take on all cores."""
        with self.up() as up:
            return Sample(up.seconds, up.cpu / len(CORES))

    def least(self) -> Sample:
        """Seconds that as many starts as one costs would take on all cores."""
        with _up(["--agent", "hello_0"], self.place, self.ports[:1]) as one:
            least = one.cpu * self.size / len(CORES)
            return Sample(least, least)

    @contextmanager
    def up(self) -> Iterator[Up]:
        """The fleet, from when every agent and the registry is ready."""
        with _up([], self.place, self.ports) as up:
            yield up


@contextmanager
def _up(arguments: Sequence[str], place: Path, ports: Sequence[int]) -> Iterator[Up]:
    command = [sys.executable, "-m", "pallas_agent_runtime", *arguments]
    begun = time.perf_counter()
    with servers.process(command, place, agents.environment(), core=None) as running:
        for port in ports:
            servers.until(partial(_ready, port), pause=0.1)
        yield Up(time.perf_counter() - begun, servers.cpu_seconds(running.pid), running.pid)


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{names.READY_PATH}", timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False
