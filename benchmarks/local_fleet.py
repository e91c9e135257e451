"""A fleet on one machine: `make demo` until all is well and until it has ended, and what one agent more costs.

The demonstration is run as a user does, in this checkout, whose `.venv` is there. One agent more is a fiftieth of what
fleets of ten and of sixty agents of one project differ by: seconds until all are ready, CPU, and memory of all
processes together, of which each counts its part of what they share (PSS). No peer has either.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fleet_start import Fleet
from benchmarks.method import agents, servers
from benchmarks.method.load import Missing
from benchmarks.method.report import Figure, at_most
from benchmarks.method.side_by_side import Effort, spread
from pallas_contract import names
from pallas_contract.fleet import source

ROOT = Path(__file__).parent.parent
FEW, MANY = 10, 60
MIB = 1024**2
_ALL_OK = "all ok after "
"""How the line begins that the demonstration prints then."""


def measure(effort: Effort) -> Iterator[Figure]:
    rounds = range(min(3, effort.rounds))
    _demonstration()  # for nothing: a first time compiles what it imports
    yield from _demonstrations([_demonstration() for _ in rounds])
    few, many = (1, 2) if effort.quick else (FEW, MANY)
    with tempfile.TemporaryDirectory() as name:
        place = agents.project(Path(name), "connection")
        ports = [servers.free_port() for _ in range(many + 1)]
        costs = [(_cost(Fleet(place, few, ports[-few - 1 :])), _cost(Fleet(place, many, ports))) for _ in rounds]
    yield Figure(f"{many} agents, all ready", spread(large.seconds for _, large in costs), at_most(12), "s")
    more = [(large - small) / (many - few) for small, large in costs]
    cpu = f"{spread(one.cpu for one in more).median:.3g} CPU-seconds"
    yield Figure("each further agent", spread(one.seconds for one in more), at_most(0.15), "s", detail=cpu)
    yield Figure("memory of each further agent (PSS)", spread(one.memory / MIB for one in more), at_most(35), "MiB")


def _demonstrations(shown: list[tuple[float, float]]) -> Iterator[Figure]:
    yield Figure("make demo, until all ok", spread(ok for ok, _ in shown), at_most(5), "s")
    yield Figure("make demo ARGS=--once, in all", spread(whole for _, whole in shown), at_most(7), "s")


def _demonstration() -> tuple[float, float]:
    """Seconds from the command until it says that all is well, and until it has ended."""
    fleet = source.read(ROOT / "examples" / "02-pallas" / names.AGENTS_FILE).data
    if servers.takes(fleet["registry_port"]):
        raise Missing("the ports of examples/02-pallas, which somebody has")
    command = ["make", "--silent", "demo", "ARGS=--once"]
    environ = agents.environment(PYTHONUNBUFFERED="1")
    said, ok = [], 0.0
    begun = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if not ok and line.startswith(_ALL_OK):
                ok = time.perf_counter() - begun
    if process.returncode or not ok:
        raise RuntimeError(f"the demonstration ended with {process.returncode}:\n{''.join(said[-30:])}")
    return ok, time.perf_counter() - begun


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds, CPU-seconds and bytes of a fleet, or of one agent of it."""

    seconds: float
    cpu: float
    memory: float

    def __sub__(self, other: _Cost) -> _Cost:
        return _Cost(self.seconds - other.seconds, self.cpu - other.cpu, self.memory - other.memory)

    def __truediv__(self, size: int) -> _Cost:
        return _Cost(self.seconds / size, self.cpu / size, self.memory / size)


def _cost(fleet: Fleet) -> _Cost:
    fleet.write()
    with fleet.up() as up:
        return _Cost(up.seconds, up.cpu, sum(servers.proportional(up.pid).values()))
