"""What a command costs that does next to nothing: CPU seconds, interpreter included, beside those of `docker compose`.

A shell that completes, a CI step and a container's health check wait for no more than this. CPU and not the clock: the
commands wait for nothing, and other programs disturb it less.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.method import load
from benchmarks.method.report import Bar, Figure, at_most, ratio
from benchmarks.method.side_by_side import Effort, Sample, compare, spread

EXAMPLE = Path(__file__).parents[1] / "examples" / "01-hello"
BIN = Path(sys.executable).parent
DOCKER = ("docker", "compose")
NOBODY = "http://127.0.0.1:1/mcp"


@dataclass
class Command:
    """A command that is run again and again in `folder`; `seconds` are those of CPU that each run took."""

    arguments: Sequence[str | Path]
    folder: Path
    seconds: list[float] = field(default_factory=list)

    def run(self) -> Sample:
        before = _children()
        done = subprocess.run(self.arguments, cwd=self.folder, env=_environment(), check=False, capture_output=True)
        if done.returncode not in (0, 1):  # 1: a health check that finds nobody
            raise RuntimeError(f"{self.arguments}: {done.stderr.decode(errors='replace')}")
        self.seconds.append(_children() - before)
        return Sample(self.seconds[-1])


@dataclass(frozen=True)
class Pair:
    """A command of ours and that of a peer; `bar` limits the CPU seconds of ours."""

    what: str
    ours: Sequence[str | Path]
    peer: str
    theirs: Sequence[str | Path]
    bar: Bar | None


def measure(effort: Effort) -> Iterator[Figure]:
    load.need("docker")
    with tempfile.TemporaryDirectory() as name:
        compose = [BIN / "pallas-gen", "compose", "-f", EXAMPLE / "agents.yaml", "-o", name]
        subprocess.run(compose, check=True, stdout=subprocess.DEVNULL)
        for pair in _pairs(Path(name, "compose.yaml")):
            command = Command(pair.ours, EXAMPLE)
            found = compare(command.run, Command(pair.theirs, EXAMPLE).run, effort)
            yield ratio(f"CPU of {pair.what} / `{pair.peer}`", found, unit="s")
            yield Figure(f"CPU of {pair.what}", spread(command.seconds[1:]), pair.bar, unit="s")


def _pairs(compose_file: Path) -> Iterator[Pair]:
    shown = ("docker compose --help", (*DOCKER, "--help"))
    version = ("docker compose version", (*DOCKER, "version"))
    read = ("docker compose config -q", (*DOCKER, "--file", compose_file, "config", "--quiet"))
    bare = ("python -c pass", (sys.executable, "-c", "pass"))
    check = (sys.executable, "-P", "-m", "pallas_contract", NOBODY)
    yield Pair("`pallas-gen --help`", (BIN / "pallas-gen", "--help"), *shown, at_most(0.15))
    yield Pair("`pallas-gen --version`", (BIN / "pallas-gen", "--version"), *version, at_most(0.15))
    yield Pair("`pallas-gen validate`, one agent", (BIN / "pallas-gen", "validate"), *read, at_most(0.35))
    yield Pair("`pallas --help`", (BIN / "pallas", "--help"), *shown, at_most(0.15))
    yield Pair("`pallas-registry --version`", (BIN / "pallas-registry", "--version"), *version, at_most(0.15))
    yield Pair("a container's health check", check, *bare, None)


def _environment() -> dict[str, str]:
    """Return an environment in which Python keeps what it has compiled, as where nobody forbids it."""
    return {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONDONTWRITEBYTECODE", "PALLAS_AGENTS_CONFIG")
    }


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
