"""Calls of an agent against a bare FastMCP server and against `fast-agent serve`, all on one core."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.method import agents, load
from benchmarks.method.mcp_load import call, call_by_cpu, converse
from benchmarks.method.report import Figure, at_least, ratio
from benchmarks.method.side_by_side import Effort, Sample, compare

HEALTH: tuple[str, dict[str, str], str] = ("get_health", {}, '"status":"ok"')


def measure(effort: Effort) -> Iterator[Figure]:
    load.need("wrk")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _one_shot(folder, effort)
        yield from _conversations(folder, effort)


def _one_shot(folder: Path, effort: Effort) -> Iterator[Figure]:
    with agents.ours(folder, "request") as ours:
        health = partial(call_by_cpu, ours.mcp, *HEALTH, effort.seconds, ours.pid)
        with agents.echo(folder) as echo:
            bare = partial(call_by_cpu, echo.mcp, *HEALTH, effort.seconds, echo.pid)
            faster = compare(health, bare, effort)
            yield ratio("get_health per CPU-second: agent / FastMCP echo", faster, at_least(2.5), "/s")
        page = partial(load.get, f"{ours.base}/healthz", effort.seconds, ours.pid)
        cheaper = compare(lambda: Sample(page().cpu or 0.0), health, effort)
        yield ratio("per CPU-second: GET /healthz / get_health", cheaper, at_least(1), "/s")
        with agents.stock(folder, "request") as stock:
            own = partial(call, ours.mcp, "send_message", agents.HI, agents.SAID_HI, effort.seconds, ours.pid)
            other = partial(call, stock.mcp, agents.NAME, agents.HI, agents.SAID_HI, effort.seconds, stock.pid)
            yield ratio(
                "one-shot send_message: agent / fast-agent serve", compare(own, other, effort), at_least(2.8), "/s"
            )


def _conversations(folder: Path, effort: Effort) -> Iterator[Figure]:
    with agents.ours(folder, "connection") as ours, agents.stock(folder, "connection") as stock:
        own = partial(converse, ours.mcp, "send_message", agents.HI, agents.SAID_HI, effort.seconds, ours.pid)
        other = partial(converse, stock.mcp, agents.NAME, agents.HI, agents.SAID_HI, effort.seconds, stock.pid)
        found = compare(own, other, effort)
        yield ratio("turns in conversations of ten: agent / fast-agent serve", found, at_least(2), "/s")
