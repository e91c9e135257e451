"""A registry as a process, and the fake agents that it watches."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.method import servers
from benchmarks.method.side_by_side import LOAD

ROOT = Path(__file__).parents[2]
CATALOGUE = "/.well-known/mcp/server.json"


@dataclass(frozen=True, slots=True)
class Registry:
    """A running one."""

    url: str
    pid: int

    def metrics(self) -> str:
        return get(f"{self.url}/metrics").decode()

    def states(self) -> dict[str, int]:
        return {
            state: round(float(count))
            for state, count in re.findall(r'^pallas_registry_agents\{status="(\w+)"\} (\S+)', self.metrics(), re.M)
        }

    def settled(self, **expected: int) -> None:
        """Wait until so many agents are in these states and nobody is in another."""
        pause = max(0.2, sum(expected.values()) / 2000)  # reading the metrics of thousands is work too
        servers.until(
            lambda: {state: count for state, count in self.states().items() if count} == expected, pause, patience=600
        )


def environment(**more: str) -> dict[str, str]:
    """For a process that imports the benchmarks."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        **more,
    }


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return bytes(reply.read())


def address(number: int) -> str:
    """Of fake agent `number`: all of 127.0.0.0/8 is this machine."""
    return f"127.{1 + number // 62500}.{number // 250 % 250 + 1}.{number % 250 + 1}"


def name(number: int) -> str:
    """Of fake agent `number`."""
    return f"a{number:05}"


def agents_yaml(names: Sequence[str], port: int, interval: float) -> str:
    head = f"name: bench\nregistry_port: {port}\nregistry: {{probe_interval: {interval:g}}}\nagents:\n"
    return head + "".join(f"  {name}: {{module: a.b, port: {20000 + n}}}\n" for n, name in enumerate(names))


@contextmanager
def fakes(addresses: Sequence[str], frozen: Sequence[str] = (), port: int | None = None) -> Iterator[tuple[int, int]]:
    """Port and process id of fake agents on these addresses, on the core of the load."""
    port = port or servers.free_port()
    command = [sys.executable, "-m", "benchmarks.method.fakes", str(port), *addresses]
    if frozen:
        command += ["--frozen", *frozen]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.process(command, Path(folder), environment(), core=LOAD) as running,
    ):
        last = [*addresses, *frozen][-1]
        servers.until(lambda: servers.takes(port, "127.0.0.1" if last == "0.0.0.0" else last))
        yield port, running.pid


@contextmanager
def registry(where: dict[str, str], interval: float) -> Iterator[Registry]:
    """A registry that asks the agents `where` (name: `address:port`) every `interval` seconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        started(Path(folder), list(where), interval, {"PALLAS_ADDRESSES": json.dumps(where)}) as running,
    ):
        yield running


@contextmanager
def started(folder: Path, names: Sequence[str], interval: float, env: dict[str, str]) -> Iterator[Registry]:
    """A registry on the core of servers with these agents in its file; without addresses it finds them by DNS."""
    port = servers.free_port()
    (folder / "agents.yaml").write_text(agents_yaml(names, port, interval))
    env = environment(PALLAS_BIND=f"127.0.0.1:{port}", **env)
    with servers.listening([sys.executable, "-m", "pallas_registry"], folder, port, env) as running:
        yield Registry(f"http://127.0.0.1:{port}", running.pid)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds now (RSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1]) * 1024  # type: ignore[index]
