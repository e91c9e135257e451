"""The cost of testing a fleet of four with pytest: its start against the same start by hand, and one test more.

By hand is `pallas`, until each agent and the registry is ready; and the compose file that the plugin has generated,
brought up by `docker compose` until the registry says that all is well. A test that sends one message to a fleet of the
session is held against that call alone, by the MCP SDK's client.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import httpx

from benchmarks.agent_start import IMAGE
from benchmarks.fleet_start import Fleet
from benchmarks.method import agents, servers
from benchmarks.method.load import Missing
from benchmarks.method.report import Figure, at_most, ratio
from benchmarks.method.side_by_side import Effort, Sample, compare, spread
from pallas_testing.fleet import registry, start
from pallas_testing.project import fleet_file
from pallas_testing.targets.base import Order

SIZE = 4
MESSAGES = 20
_TESTS = f"""\
import asyncio
import time

import pytest
from mcp import Client

numbers = pytest.mark.parametrize("number", range({MESSAGES}))


@numbers
def test_one_message(fleet, number):
    assert "hi" in fleet.agent("hello_0").ask("hi").text


@numbers
def test_the_call_alone(running_fleet, number, record_property):
    async def call():
        async with Client(url) as client:
            return await client.call_tool("send_message", {{"message": "hi"}})

    url = running_fleet.target.url("hello_0") + "/mcp"
    began = time.perf_counter()
    answer = asyncio.run(call())
    record_property("call", time.perf_counter() - began)
    assert "hi" in answer.content[0].text
"""


def measure(effort: Effort) -> Iterator[Figure]:
    few = Effort(rounds=min(3, effort.rounds))
    with tempfile.TemporaryDirectory() as name:
        place = agents.project(Path(name), "connection")
        fleet = Fleet(place, SIZE, [servers.free_port() for _ in range(SIZE + 1)])
        fleet.write()
        yield from _processes(fleet, Path(name), few)
        yield _one_more_test(place)
        if not _is_here(IMAGE):
            raise Missing(f"{IMAGE}: make images")
        starts = Starts("compose", place, Path(name) / "compose")
        found = compare(starts.by_the_plugin, starts.by_hand, few)
        yield ratio("compose, fleet of 4: plugin until up / docker compose up until all ok", found, at_most(1.2), "s")


def _is_here(image: str) -> bool:
    command = ["docker", "image", "inspect", image]
    return bool(shutil.which("docker")) and not subprocess.run(command, check=False, capture_output=True).returncode


def _processes(fleet: Fleet, folder: Path, effort: Effort) -> Iterator[Figure]:
    starts = Starts("processes", fleet.place, folder / "processes")
    found = compare(starts.by_the_plugin, fleet.started, effort)
    # the first one was for nothing, as in each comparison
    yield Figure("processes, fresh fleet of 4 until up", spread(starts.seconds[1:]), at_most(5), "s")
    yield ratio("processes, fleet of 4: plugin until up / pallas until all ready", found, unit="s")


@dataclass
class Starts:
    """Starts of the fleet in `place` on a target, each in a folder of its own below `folder`."""

    target: str
    place: Path
    folder: Path
    seconds: list[float] = field(default_factory=list)

    def by_the_plugin(self) -> Sample:
        """Seconds until the plugin has the fleet up."""
        work = self.folder / str(len(self.seconds))
        work.mkdir(parents=True)
        begun = time.perf_counter()
        with start.running(self.target, Order(self.place / "agents.yaml", work), {}):
            self.seconds.append(time.perf_counter() - begun)
        return Sample(self.seconds[-1])

    def by_hand(self) -> Sample:
        """Seconds until what the plugin has generated last is up as a compose project."""
        project = self.folder / str(len(self.seconds) - 1) / "project"
        file = fleet_file.read(project / "agents.yaml")
        command = ["docker", "compose", "--project-name", "pallas-bench-by-hand"]
        begun = time.perf_counter()
        try:
            subprocess.run([*command, "up", "--detach"], check=True, cwd=project, capture_output=True)
            servers.until(
                partial(_all_ok, f"http://127.0.0.1:{file.registry_port}", file), pause=0.1, patience=start.PATIENCE
            )
            return Sample(time.perf_counter() - begun)
        finally:
            down = [*command, "down", "--volumes", "--remove-orphans", "--timeout", "10"]
            subprocess.run(down, check=True, cwd=project, capture_output=True)


def _all_ok(url: str, file: fleet_file.FleetFile) -> bool:
    try:
        document = httpx.get(url + registry.DOCUMENT, timeout=5, trust_env=False).raise_for_status().json()
    except httpx.HTTPError:
        return False
    states = registry.states(document)
    return len(states) == len(file.agents) and all(state.status == "ok" for state in states.values())


def _one_more_test(place: Path) -> Figure:
    """Seconds that a test takes, its fixture and the end included, more than its call."""
    (place / "test_messages.py").write_text(_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml", "report.xml", "-p", "no:cacheprovider"]
    done = subprocess.run(command, check=False, cwd=place, env=agents.environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
    cases = list(ElementTree.parse(place / "report.xml").getroot().iter("testcase"))
    whole = [float(case.get("time", 0)) for case in cases if "test_one_message" in case.get("name", "")]
    calls = [float(entry.get("value", 0)) for case in cases for entry in case.iter("property")]
    alone = statistics.median(calls)
    # the first test has the fleet's start in it
    more = spread(seconds - alone for seconds in whole[1:])
    detail = f"{statistics.median(whole[1:]):.3g} against {alone:.3g} s"
    return Figure("a test of one message more than the call alone", more, at_most(0.3), "s", detail=detail)
