"""Load on a plain page, by wrk on its own core."""

from __future__ import annotations

import re
import shutil
import subprocess

from benchmarks.method.servers import cpu_seconds
from benchmarks.method.side_by_side import LOAD, Sample

CONNECTIONS = 16


class Missing(Exception):
    """A command that a benchmark needs is not here; the text names it."""


def need(*commands: str) -> None:
    """Raises: Missing."""
    if missing := [command for command in commands if not shutil.which(command)]:
        raise Missing(f"{', '.join(missing)}: not installed")


def get(url: str, seconds: float, server: int, *headers: str, ok: bool = True) -> Sample:
    """Requests per second, and per CPU-second of process `server`, of GET on `url`.

    `ok`: every answer must be 2xx or 3xx.
    """
    more = [part for header in headers for part in ("-H", header)]
    duration = f"-d{max(1, round(seconds))}s"  # wrk knows whole seconds only
    command = ["taskset", "-c", str(LOAD), "wrk", "-t1", f"-c{CONNECTIONS}", duration, *more, url]
    before = cpu_seconds(server)
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    spent = cpu_seconds(server) - before
    if (ok and "Non-2xx" in said) or "Socket errors" in said:
        raise RuntimeError(f"{url}: {said}")
    requests, rate = _figure(r"(\d+) requests in", said), _figure(r"Requests/sec:\s+([\d.]+)", said)
    return Sample(rate, requests / spent)


def p99(url: str, seconds: float) -> float:
    """Milliseconds within which 99 of 100 answers to GET on `url` are there, as fast as they can be asked for."""
    command = [
        "taskset",
        "-c",
        str(LOAD),
        "wrk",
        "--latency",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{max(1, round(seconds))}s",
    ]
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"{url}: {said}")
    found = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    if found is None:
        raise RuntimeError(f"wrk said something else: {said}")
    return float(found[1]) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[found[2]]


def _figure(pattern: str, said: str) -> float:
    found = re.search(pattern, said)
    if found is None:
        raise RuntimeError(f"wrk said something else: {said}")
    return float(found[1])
