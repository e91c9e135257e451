"""`pallas` without arguments: examples/02-pallas as processes on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pallas_testing.fleet.start import Running

from . import daedalus, local, scenario
from .examples import copied_from

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running_fleet(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The example for all tests here; the last one ends it."""
    with local.running(root / "examples" / "02-pallas", tmp_path_factory.mktemp("local")) as fleet:
        yield fleet


@pytest.fixture
async def up(running_fleet: Running) -> local.Local:
    """The fleet with every agent ok."""
    fleet = local.Local(running_fleet)
    try:
        await scenario.until_states(fleet.url("registry"), scenario.ALL_OK, within=local.PATIENCE)
    except AssertionError as error:
        error.add_note(fleet.said)
        raise
    return fleet


globals().update(copied_from("02-pallas"))


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
    assert second.stderr.splitlines()[-1].startswith("pallas: this fleet runs already: `pallas status` shows it")
    pid = up.pid("research")
    assert re.search(
        rf"research cannot listen on \S+: address already in use by .*\(pid {pid}: `research` of ", second.stderr
    )
    assert (
        second.stderr.count("address already in use") == len(local.children(up.supervisor)) - 2
    )  # all but the guardian and the warm parent


def homes(up: local.Local) -> Path:
    """The folder of `pallas` itself, with those of its agents."""
    environ = Path(f"/proc/{up.pid('registry')}/environ").read_text().split("\0")
    return Path(next(value for value in environ if value.startswith("PALLAS_ABSENCES=")).partition("=")[2]).parent


async def test_a_crashed_agent_is_shown_restarted_and_used_again(up):
    registry, harper = up.url("registry"), f"{up.url('harper')}/mcp"
    folder = homes(up)
    (before,) = (folder / "research").iterdir()
    again = partial(up.kill_again, "research")  # a fork is ready within a second
    await scenario.registry_follows_a_crash(registry, harper, up, patience=local.PATIENCE, again=again)
    ended = r"^research +: was ended by SIGKILL( \(its last line: .+\))?; starting it again in 0.5 s$"
    assert re.search(ended, up.said, re.MULTILINE)
    assert re.search(r"^research +: ready again after ", up.said, re.MULTILINE)
    (after,) = (folder / "research").iterdir()
    assert after != before
    assert (after / "fast-agent.yaml").is_file()


async def test_daedalus(up):
    async with daedalus.running(up.url("registry"), up) as client:
        for sentence in daedalus.SENTENCES:
            await sentence(client)


async def pallas(up, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb on the fleet, as a user in its folder does."""
    return await asyncio.to_thread(
        subprocess.run,
        [Path(sys.executable).with_name("pallas"), *words],
        cwd=up.config.parent,
        env={name: value for name, value in os.environ.items() if not name.startswith("PALLAS_")},
        input="Who looks after the repositories?\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


async def test_the_verbs_ask_and_look_after_the_fleet(up):
    status = await pallas(up, "status", "--format", "json")
    assert status.returncode == 0, status.stderr
    assert {entry["status"] for entry in json.loads(status.stdout)["agents"]} == {"ok"}
    call = await pallas(up, "call", "harper", "-", "--json")
    assert call.returncode == 0, call.stderr
    answer = json.loads(call.stdout)
    assert "Research, asking from " in answer["text"]
    assert "research/research__research: completed" in answer["progress"]
    assert "  research/research__research: completed\n" in call.stderr
    chat = await pallas(up, "chat", "tech_research")
    assert "Tech Research, asking from " in chat.stdout, chat.stderr
    logs = await pallas(up, "logs", "harper")
    assert "tool=harper" in logs.stdout or "tool=send_message" in logs.stdout
    assert {line.partition(" ")[0] for line in logs.stdout.splitlines()} == {"harper"}


async def test_one_interrupt_stops_all(up):
    children = local.children(up.supervisor)
    folder = homes(up)
    # Ten members, the guardian that ends what they leave, and the process that agents are forked from.
    assert len(children) == 12
    os.kill(up.supervisor, signal.SIGINT)
    async with asyncio.timeout(60):
        while up.code is None:
            await asyncio.sleep(0.05)
    assert up.code == 0, up.said
    assert local.all_gone(children)
    assert not folder.exists()
