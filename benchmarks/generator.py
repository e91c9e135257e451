"""The generator on large fleets: compose files beside Docker's own reading of them, charts, and how both grow.

A fleet here is a tree of agents, each asking the one above it. A time is that of whole commands, interpreter included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.method import load
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import Effort, Sample, compare

GENERATE = [sys.executable, "-m", "pallas_gen"]
FAN_OUT = 8


def measure(effort: Effort) -> Iterator[Figure]:
    small, large = (20, 40) if effort.quick else (500, 1000)
    with tempfile.TemporaryDirectory() as name:
        folders = {size: fleet(Path(name), size) for size in (small, large)}
        compose = {size: partial(_run, folder, (_compose(size),)) for size, folder in folders.items()}
        chart = {size: partial(_run, folder, _chart(size)) for size, folder in folders.items()}
        load.need("docker")
        compose[large]()
        read = ["docker", "compose", "--file", f"../compose-{large}/compose.yaml", "config", "--quiet"]
        found = compare(compose[large], partial(_run, folders[large], (read,)), effort)
        yield ratio(
            f"compose file of {large:,} agents: generating / `docker compose config -q`", found, at_most(0.25), "s"
        )
        found = compare(compose[large], compose[small], effort)
        yield ratio(f"compose file: {large:,} agents / {small:,}", found, at_most(2.6), "s")
        load.need("helm")
        found = compare(chart[large], chart[small], effort)
        yield ratio(f"chart and `helm template`: {large:,} agents / {small:,}", found, at_most(2.6), "s")


def fleet(folder: Path, size: int) -> Path:
    """A project of `size` agents: ten to a card, since what is long is the fleet file."""
    place = folder / f"fleet-{size}"
    (place / "agents").mkdir(parents=True)
    lines = [f"name: fleet-{size}\nregistry_port: 19999\nagents:\n"]
    for number in range(size):
        card = f"agents/agent_{number // 10}.md"
        (place / card).write_text("---\ntype: agent\nname: one\n---\nYou are one of many.\n")
        asks = f", depends_on: [agent_{(number - 1) // FAN_OUT}]" if number else ""
        about = f"port: {20_000 + number}, description: Does number {number}{asks}"
        lines.append(f"  agent_{number}: {{card: {card}, {about}}}\n")
    (place / "agents.yaml").write_text("".join(lines))
    (place / "fastagent.config.yaml").write_text("default_model: passthrough\n")
    return place


def _compose(size: int) -> list[str]:
    return [*GENERATE, "compose", "--output", f"../compose-{size}"]


def _chart(size: int) -> tuple[list[str], list[str]]:
    place = f"../chart-{size}"
    return [*GENERATE, "helm", "--output", place], ["helm", "template", "fleet", place]


def _run(folder: Path, commands: Sequence[list[str]]) -> Sample:
    """Seconds and CPU-seconds of `commands`, one after the other."""
    before, begun = _children(), time.perf_counter()
    for command in commands:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return Sample(time.perf_counter() - begun, _children() - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
