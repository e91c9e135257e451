"""`pallas` without arguments: the examples as processes on this machine."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from . import daedalus, scenario
from .projects import copy_example

pytestmark = pytest.mark.slow

PATIENCE = 240.0
"""Seconds until a fleet is up: about 30 s on two cores, much longer when they are shared."""


class Pallas:
    """A running `pallas` on a copy of an example with ports of its own."""

    def __init__(self, config: Path, log: Path) -> None:
        self.log, self.config = log, config
        self.launch()

    def launch(self) -> None:
        """Run it, for the first time or again."""
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [Path(sys.executable).with_name("pallas")],
                env={**os.environ, "PALLAS_AGENTS_CONFIG": self.config.name, "PALLAS_CONNECT_TIMEOUT": "30"},
                cwd=self.config.parent,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def url(self, member: str) -> str:
        """`http://address:port` of an agent or of the registry."""
        text = self.config.read_text()
        key = r"^registry_port: " if member == "registry" else rf"^  {member}:\n(?:    .*\n)*?    port: "
        match = re.search(key + r"(\d+)", text, re.MULTILINE)
        assert match is not None
        return f"http://127.0.0.1:{match[1]}"

    def children(self) -> dict[int, str]:
        """The command line of each child by its process id."""
        found = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):
                found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
        return found

    def pid(self, agent: str) -> int:
        return next(pid for pid, command in self.children().items() if command.endswith(f"--agent {agent}"))

    def kill(self, agent: str) -> None:
        os.kill(self.pid(agent), signal.SIGKILL)

    def start(self, agent: str) -> None:
        """The supervisor does it."""

    def freeze(self, agent: str) -> None:
        os.kill(self.pid(agent), signal.SIGSTOP)

    def thaw(self, agent: str) -> None:
        os.kill(self.pid(agent), signal.SIGCONT)

    def alive(self) -> None:
        assert self.process.poll() is None, self.said

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")


@contextmanager
def running(example: Path, folder: Path) -> Iterator[Pallas]:
    """Run `pallas` on a copy of `example` below `folder`; nothing of it runs afterwards."""
    config = copy_example(example, folder, name=example.name, more="registry: {probe_interval: 0.5}\n")
    pallas = Pallas(config, folder / f"{example.name}.log")
    try:
        yield pallas
    finally:
        pallas.process.kill()  # its children die with it
        pallas.process.wait()


def all_gone(pids: list[int], within: float = 60.0) -> bool:
    end = time.monotonic() + within
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def fleet(root, tmp_path_factory) -> Iterator[Pallas]:
    """examples/02-pallas for all tests here."""
    with running(root / "examples" / "02-pallas", tmp_path_factory.mktemp("local")) as pallas:
        yield pallas


@pytest.fixture
async def up(fleet) -> Pallas:
    """The fleet with every agent ok, started again if the test before has stopped it."""
    if fleet.process.poll() is not None:
        fleet.launch()
    try:
        await scenario.until_states(fleet.url("registry"), scenario.ALL_OK, within=PATIENCE, alive=fleet.alive)
    except AssertionError as error:
        error.add_note(fleet.said)
        raise
    return fleet


async def test_the_registry_lists_every_agent_where_it_is(up):
    entries = await scenario.catalogue(up.url("registry"))
    assert entries["tech-research"]["server"]["title"] == "Tech Research Agent"
    assert entries["harper"]["server"]["remotes"][0]["url"] == f"{up.url('harper')}/mcp".replace(
        "127.0.0.1", "localhost"
    )
    assert entries["harper"]["server"]["capabilities"] == {
        "model": "scripted",
        "vision": False,
        "context_window": 200000,
        "max_output_tokens": 32000,
    }


@pytest.mark.parametrize("era", scenario.ERAS)
async def test_harper_delegates(up, era):
    await scenario.harper_delegates(f"{up.url('harper')}/mcp", era)


async def test_a_second_fleet_on_these_ports_is_refused_before_it_starts_anything(up):
    second = await asyncio.to_thread(
        subprocess.run,
        [Path(sys.executable).with_name("pallas"), "--config", up.config],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert second.returncode == 1
    assert second.stdout == ""
    pid = up.pid("research")
    assert re.search(
        rf"research cannot listen on \S+: address already in use by .*\(pid {pid}: `research` of ", second.stderr
    )
    assert (
        second.stderr.count("address already in use") == len(up.children()) - 2
    )  # all but the guardian and the warm parent


async def test_a_crashed_agent_is_shown_restarted_and_used_again(up):
    await scenario.registry_follows_a_crash(up.url("registry"), f"{up.url('harper')}/mcp", up, patience=PATIENCE)
    ended = r"^research +: was ended by SIGKILL( \(its last line: .+\))?; starting it again in 0.5 s$"
    assert re.search(ended, up.said, re.MULTILINE)
    assert re.search(r"^research +: ready again after ", up.said, re.MULTILINE)


async def test_a_frozen_agent_is_shown_and_used_again(up):
    await scenario.registry_follows_a_freeze(up.url("registry"), f"{up.url('harper')}/mcp", up)


@pytest.mark.parametrize("sentence", daedalus.SENTENCES, ids=lambda each: each.__name__)
async def test_daedalus(up, sentence):
    async with daedalus.running(up.url("registry"), up) as client:
        await sentence(client)


async def test_one_interrupt_stops_all(up):
    children = list(up.children())
    # Ten members, the guardian that ends what they leave, and the process that agents are forked from.
    assert len(children) == 12
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(timeout=60) == 0, up.said
    assert all_gone(children)


async def test_an_agent_without_python_answers_and_nothing_outlives_a_killed_supervisor(root, tmp_path):
    with running(root / "examples" / "01-hello", tmp_path) as hello:
        await scenario.until_states(hello.url("registry"), {"hello": "ok"}, within=PATIENCE, alive=hello.alive)
        answer = await scenario.ask(f"{hello.url('hello')}/mcp", "hello", "good morning", "auto")
        assert "good morning" in answer.text
        children = list(hello.children())
        hello.process.kill()
        assert all_gone(children)
