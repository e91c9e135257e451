"""Faults of agents.yaml and of the registry's own process: broken, changed and replaced files, and SIGKILL."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from statistics import median

import httpx
import pytest

from tests.registry.faults import misbehaving as bad
from tests.registry.faults.ground import CATALOGUE, Ground, addresses, fleet, watched
from tests.registry.processes import DEADLINE, registry, until

pytestmark = [pytest.mark.slow, pytest.mark.waits]

RESTART = 2.0
"""Seconds from the start of the process to the bytes of before, or on a busy machine ..."""
IMPORTS = 3.0
"""... that many times what it takes there to import what the registry is made of, which is 0.6 s on an idle one."""
KILLS = 4
EXTRA = "  scout: {module: agents.any, port: 20100, title: TITLE}\n"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[tuple[Ground, str]]:
    """A registry over three healthy agents, of which `scout` is not in the file; and PALLAS_ADDRESSES."""
    async with AsyncExitStack() as stack:
        where = {}
        for name in ("harper", "research", "scout"):
            agent = bad.Agent(name)
            await agent.start()
            stack.push_async_callback(agent.stop)
            where[name] = agent.address
        port = fleet(tmp_path, ["harper", "research"], interval=0.5)
        ground = await stack.enter_async_context(watched(tmp_path, port, PALLAS_ADDRESSES=addresses(where)))
        await ground.until("ok", ["harper", "research"])
        yield ground, addresses(where)


async def etags(ground: Ground, seen: list[str]) -> None:
    """Each ETag once, in order, asked for hundreds of times a second.

    By hand: a client's own work would be nine tenths of what this takes of the machine.
    """
    place = ground.client.base_url
    reader, writer = await asyncio.open_connection(place.host, place.port)
    question = f"HEAD {CATALOGUE} HTTP/1.1\r\nhost: {place.host}:{place.port}\r\n\r\n".encode()
    with closing(writer):
        while True:
            writer.write(question)
            status, *heads = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").splitlines()
            assert status.startswith("HTTP/1.1 200 ")
            (tag,) = (head.partition(":")[2].strip() for head in heads if head.lower().startswith("etag:"))
            if seen[-1:] != [tag]:
                seen.append(tag)
            await asyncio.sleep(0.001)


async def test_19_a_broken_file_keeps_the_old_catalogue(running, tmp_path: Path) -> None:
    ground, _ = running
    file = tmp_path / "agents.yaml"
    whole, before = file.read_text(), (await ground.client.get(CATALOGUE)).content
    for broken in ("agents: [", whole.replace("port: 20001", "prt: 20001"), ""):
        file.write_text(broken)
        await until(lambda: ground.gauge("pallas_registry_config_ok"), lambda ok: ok == 0)
        assert (await ground.client.get(CATALOGUE)).content == before
        file.write_text(whole)
        await until(lambda: ground.gauge("pallas_registry_config_ok"), lambda ok: ok == 1)
    file.write_text(whole + EXTRA)
    await ground.until("ok", ["harper", "research", "scout"])
    assert all(change.agent == "scout" for change in ground.changes)


async def test_20_each_change_of_the_file_changes_the_etag_once(running, tmp_path: Path) -> None:
    ground, _ = running
    file = tmp_path / "agents.yaml"
    whole = file.read_text()
    seen: list[str] = []
    watch = asyncio.create_task(etags(ground, seen))
    await until(lambda: asyncio.sleep(0, seen), lambda tags: len(tags) == 1)
    steps = {
        "added": (whole + EXTRA, ["harper", "research", "scout"]),
        "renamed": (whole + EXTRA.replace("TITLE", "Other"), ["harper", "research", "scout"]),
        "removed": (whole, ["harper", "research"]),
    }
    for number, (what, (text, agents)) in enumerate(steps.items(), 2):
        file.write_text(text)
        await until(lambda: asyncio.sleep(0, seen), lambda tags, number=number: len(tags) >= number)
        states = await ground.states()  # the request after the one that had a new ETag
        assert sorted(states) == sorted(agents), what
        assert {state for state, _ in states.values()} == {"ok"}, what
        await ground.probes(8)
        assert len(seen) == number, what
    watch.cancel()


async def test_18_a_registry_killed_in_the_middle_of_a_reload_says_the_same_again(
    running, tmp_path: Path, record_property
) -> None:
    """Killed at moments of a seeded choice while the file is replaced; nothing is torn, because it writes nothing."""
    ground, where = running
    port = int(str(ground.client.base_url.port))
    file, aside = tmp_path / "agents.yaml", tmp_path / "aside"
    wanted = (await ground.client.get(CATALOGUE)).content
    ground.process.kill()
    await ground.process.wait()
    whole, listing = file.read_text(), sorted(path.name for path in tmp_path.iterdir())
    chance, took, imported = random.Random(18), [], []
    for _ in range(KILLS):
        imported.append(await imports())
        began = time.monotonic()
        async with (
            registry(tmp_path, PALLAS_BIND=f"127.0.0.1:{port}", PALLAS_ADDRESSES=where) as process,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client,
        ):
            await until(lambda client=client: client.get(CATALOGUE), lambda reply: reply.content == wanted)
            took.append(time.monotonic() - began)
            file.rename(aside)
            file.write_text(whole + EXTRA)
            await asyncio.sleep(chance.uniform(0.9, 2.5))  # it is about to be read, being read, or just read
            process.kill()
            await process.wait()
        aside.rename(file)
        assert sorted(path.name for path in tmp_path.iterdir()) == listing
    for seconds, alone in zip(took, imported, strict=True):
        record_property("back", f"{seconds:.2f} s; its imports alone take {alone:.2f} s")
    assert median(took) <= max(RESTART, IMPORTS * median(imported))


async def imports() -> float:
    """Seconds that a Python takes now to start and to import the registry."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import pallas_registry.server")
    assert await process.wait() == 0
    return time.monotonic() - began
