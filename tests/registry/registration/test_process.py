"""A registry as a process, killed without warning again and again: what it acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port
from tests.registry.processes import DEADLINE, registry, until
from tests.registry.registration_client import TOKENS, admit, leave, register

pytestmark = pytest.mark.slow

WRITTEN = """
registry:
  registration:
    tokens: {partners: {file: partners.token}, pricing: {file: pricing.token}}
    store: true
    max_agents: 1000
"""


async def ask(client: httpx.AsyncClient, message: dict) -> httpx.Response:
    return await client.post("/mcp", json=message, headers={"authorization": f"Bearer {TOKENS['partners']}"})


async def registered(client: httpx.AsyncClient) -> dict[str, str]:
    """Slug -> description of those who registered."""
    servers = (await client.get("/.well-known/mcp/server.json")).json()["servers"]
    return {
        each["server"]["name"].split("/")[1]: each["server"]["description"]
        for each in servers
        if "io.pallas-kit/registration" in each["_meta"]
    }


async def chatter(
    client: httpx.AsyncClient,
    slot: int,
    acknowledged: dict[str, str | None],
    doubtful: set[str],
    said: asyncio.Queue[None],
) -> None:
    """Register, change and deregister, noting what was acknowledged, until the registry is gone."""
    dice = random.Random(slot)
    with suppress(httpx.TransportError):
        for number in range(10_000):
            agent, text = f"agent-{slot}-{dice.randrange(8)}", f"number {number}"
            wanted = None if acknowledged.get(agent) and dice.random() < 0.4 else text
            doubtful.add(agent)
            reply = await ask(client, leave(agent) if wanted is None else register(agent, description=text))
            if reply.status_code == 429:
                await asyncio.sleep(0.05)
                doubtful.discard(agent)
                continue
            assert reply.status_code == 200, reply.text
            acknowledged[agent] = wanted
            doubtful.discard(agent)
            said.put_nowait(None)


async def test_kill_9_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    """An agent whose last request was under way at the kill may be in either state; every other one is as was said."""
    admit(folder, WRITTEN)
    acknowledged: dict[str, str | None] = {}
    env = {"PALLAS_ADDRESSES": "{}", "PALLAS_REGISTRATIONS": ".pallas/registrations.db"}
    for lives in range(4):
        port, doubtful, said = free_port(), set(), asyncio.Queue()
        async with (
            registry(folder, PALLAS_BIND=f"127.0.0.1:{port}", **env) as process,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client,
        ):
            await until(lambda client=client: client.get("/livez"), lambda reply: reply.status_code == 200)
            found = await registered(client)
            assert found == {agent: text for agent, text in acknowledged.items() if text}
            talking = [
                asyncio.create_task(chatter(client, lives * 10 + slot, acknowledged, doubtful, said))
                for slot in range(3)
            ]
            async with asyncio.timeout(DEADLINE):
                for _ in range(20 + 7 * lives):
                    await said.get()
            process.send_signal(signal.SIGKILL)
            await process.wait()
            await asyncio.gather(*talking)
        for agent in doubtful:
            acknowledged[agent] = kept(folder).get(agent)
    assert len(acknowledged) >= 20
    assert {agent: text for agent, text in acknowledged.items() if text} == kept(folder)


async def test_one_that_is_started_by_hand_keeps_them_where_the_file_says_store(folder: Path) -> None:
    admit(folder, WRITTEN)
    port = free_port()
    for known in (set(), {"steady"}):
        async with (
            registry(folder, PALLAS_BIND=f"127.0.0.1:{port}") as process,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client,
        ):
            await until(lambda client=client: client.get("/livez"), lambda reply: reply.status_code == 200)
            assert {*await registered(client)} == known
            assert (await ask(client, register("steady", description="here"))).status_code == 200
            process.send_signal(signal.SIGTERM)
            await process.communicate()


def kept(folder: Path) -> dict[str, str]:
    """What the file says, read by nobody's code but SQLite's."""
    file = sqlite3.connect(folder / ".pallas" / "registrations.db")
    rows = file.execute("SELECT agent, said FROM registrations").fetchall()
    file.close()
    return {agent: json.loads(said)["description"] for agent, said in rows}


async def test_the_documented_curl_commands_work_as_written(folder: Path, root: Path) -> None:
    """Each `sh` block of the page, run in order against a registry."""
    page = (root / "docs" / "registration.md").read_text()
    admit(folder, WRITTEN)
    port = free_port()
    (folder / "token").write_text(TOKENS["partners"])
    env = {"PALLAS_ADDRESSES": "{}", "PALLAS_REGISTRATIONS": ".pallas/registrations.db"}
    async with registry(folder, PALLAS_BIND=f"127.0.0.1:{port}", **env) as process:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client:
            await until(lambda: client.get("/livez"), lambda reply: reply.status_code == 200)
            assert (await ask(client, register("steady"))).status_code == 200
        blocks = [block.partition("```")[0] for block in page.split("```sh\n")[1:]]
        said = []
        for block in blocks:
            command = block.replace("https://registry.example.com", f"http://127.0.0.1:{port}")
            shell = await asyncio.create_subprocess_shell(
                command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            out, err = await shell.communicate()
            assert shell.returncode == 0, err.decode()
            said.append(json.loads(out))
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    with closing(sqlite3.connect(folder / ".pallas" / "registrations.db")) as file:
        assert file.execute("SELECT agent FROM uptime").fetchall() == [("steady",)], "saved at the end"
    assert [each["result"]["status"] for each in said] == ["registered", "ok", "deregistered"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("no database at all " * 99), "file is not a database"),
        (lambda path: path.mkdir(), "is a directory"),
    ],
)
async def test_a_file_that_cannot_be_used_is_one_line_and_1(folder: Path, make, message: str) -> None:
    admit(folder, WRITTEN)
    make(folder / "kept.db")
    async with registry(folder, PALLAS_BIND="127.0.0.1:1", PALLAS_REGISTRATIONS="kept.db") as process:
        out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err.decode() == f"pallas-registry: registrations cannot be kept in kept.db: {message}\n"


async def test_a_token_that_is_missing_is_what_the_user_wrote(folder: Path) -> None:
    admit(folder, WRITTEN)
    (folder / "pricing.token").unlink()
    async with registry(folder) as process:
        _, err = await process.communicate()
    assert process.returncode == 2
    assert err.decode().startswith(
        "agents.yaml registry.registration.tokens.pricing.file: pricing.token cannot be read: no such file or directory"
    )
