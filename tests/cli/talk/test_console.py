"""`pallas console`: the page, the agents that the registry has, and calls led on to them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_cli import main as command
from pallas_cli.running import kubernetes, locate
from pallas_cli.running.catalogue import Member, NoRegistry
from pallas_cli.running.locate import Registry
from pallas_cli.talk import console
from pallas_cli.talk.console import Relay
from pallas_contract.launch import run_files
from tests.cli.conftest import TOKEN, Stand
from tests.gateway.door import Agent
from tests.ports import free_port
from tests.served import served


@asynccontextmanager
async def opened(stand: Stand, **urls: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the console over the registry of `stand`, whose agents are at `urls`."""
    with ExitStack() as ways:
        relay = Relay(Registry(stand.url), ways)
        async with console.client() as http:
            relay._urls.update(urls)
            async with served(console.application(relay, http)) as web:
                yield web


async def test_the_agents_are_those_of_the_registry(stand: Stand) -> None:
    stand.states["clerk"] = {"status": "error"}
    async with opened(stand) as web:
        rows = (await web.get("/console/agents.json")).json()["agents"]
        assert [(row["name"], row["mcp"]) for row in rows] == [
            ("desk", "/agents/desk/mcp"),
            ("clerk", "/agents/clerk/mcp"),
        ]
        assert (await web.get("/", follow_redirects=True)).url.path == "/console"


async def test_a_call_is_led_on_with_its_token_and_its_progress(stand: Stand) -> None:
    agent = Agent("desk")
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(served(await stack.enter_async_context(agent.app())))
        web = await stack.enter_async_context(opened(stand, desk=f"{behind.base_url}/mcp"))
        web.headers["authorization"] = "Bearer one"
        agent.more.set()
        lines: list[str] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            lines.append(message or "")

        client = Client(streamable_http_client(f"{web.base_url}/agents/desk/mcp"))
        async with client:
            await client.call_tool("steps", {}, progress_callback=note)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        await web.post("/agents/desk/mcp", json=message, headers={"cookie": "a=b", "x-other": "c"})
    assert lines == ["one", "two"]
    assert agent.heads[-1]["authorization"] == "Bearer one"
    assert {"cookie", "x-other", "origin"}.isdisjoint(agent.heads[-1])


async def test_who_hangs_up_ends_the_call(stand: Stand) -> None:
    agent = Agent("desk")
    meta = {
        f"io.modelcontextprotocol/{key}": value
        for key, value in (("protocolVersion", "2026-07-28"), ("clientCapabilities", {}))
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "wait", "arguments": {}, "_meta": meta},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "wait",
    }
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(served(await stack.enter_async_context(agent.app())))
        web = await stack.enter_async_context(opened(stand, desk=f"{behind.base_url}/mcp"))
        asking = asyncio.create_task(web.post("/agents/desk/mcp", json=message, headers=headers, timeout=60))
        async with asyncio.timeout(60):
            await agent.waiting.wait()
            asking.cancel()
            await agent.cancelled.wait()


@pytest.mark.parametrize(("registered", "status"), [(False, 200), (True, 401)])
async def test_an_agent_that_registered_itself_is_shown_no_token(stand: Stand, registered: bool, status: int) -> None:
    stand.token, stand.registered = TOKEN, registered
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json, text/event-stream"}
    async with opened(stand) as web:
        await web.get("/console/agents.json")
        assert (await web.post("/agents/desk/mcp", json=message, headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [("/agents/desk/mcp", 503, "unreachable"), ("/agents/nobody/mcp", 404, "unknown_agent")],
)
async def test_who_is_not_there_is_told_with_a_reason(stand: Stand, path: str, status: int, reason: str) -> None:
    async with opened(stand, desk="http://127.0.0.1:1/mcp") as web:
        answer = await web.post(path, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert (answer.status_code, answer.json()["error"]["data"]["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost:1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:1"}, 403),
        ({"origin": "https://localhost"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/console/agents.json", "/agents/desk/mcp"])
async def test_pages_of_other_sites_are_refused(stand: Stand, path: str, header: dict[str, str], status: int) -> None:
    async with opened(stand) as web:
        method = "GET" if path.endswith("json") else "POST"
        assert (await web.request(method, path, headers=header, json={})).status_code == status


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_its_own_page_is_not(stand: Stand, host: str) -> None:
    async with opened(stand) as web:
        header = {"host": f"{host}:{web.base_url.port}", "origin": f"http://{host}:{web.base_url.port}"}
        assert (await web.get("/console/agents.json", headers=header)).status_code == 200


async def test_what_a_page_sends_without_a_preflight_is_not_led_on(stand: Stand) -> None:
    async with opened(stand, desk="http://127.0.0.1:1/mcp") as web:
        for kind in ("text/plain", "text/plain; a=application/json", ""):
            answer = await web.post("/agents/desk/mcp", content=b"{}", headers={"content-type": kind})
            assert (answer.status_code, answer.json()["error"]["data"]["reason"]) == (400, "malformed")


async def test_a_large_message_is_refused_before_it_is_read_whole(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "MOST_BODY", 100_000)

    async with opened(stand, desk="http://127.0.0.1:1/mcp") as web:
        address, port = web.base_url.host, web.base_url.port
        head = f"POST /agents/desk/mcp HTTP/1.1\r\nHost: {address}:{port}\r\nContent-Type: application/json\r\n"
        reader, writer = await asyncio.open_connection(address, port)
        # nothing of it comes
        writer.write(f"{head}Content-Length: 100001\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert b" 413 " in await reader.readline()
        writer.close()
        reader, writer = await asyncio.open_connection(address, port)
        # its end never comes
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n186a1\r\n".encode() + bytes(100_001) + b"\r\n")
        async with asyncio.timeout(60):
            assert b" 413 " in await reader.readline()
        writer.close()


async def test_a_registry_that_is_away_is_told(stand: Stand) -> None:
    stand.url = "http://127.0.0.1:1"
    async with opened(stand) as web:
        answer = await web.get("/console/agents.json")
        assert answer.status_code == 503
        assert "no registry answers" in answer.json()["error"]


async def test_in_a_cluster_there_is_one_way_to_each_agent(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []

    @contextmanager
    def forwarded(namespace: str, member: str):  # type: ignore[no-untyped-def]
        ways.append(f"{namespace}/{member}")
        yield f"http://{member}"
        ways.append("ended")

    monkeypatch.setattr(kubernetes, "forwarded", forwarded)
    with ExitStack() as stack:
        relay = Relay(Registry(stand.url), stack, "demo")
        assert [await relay.url("desk"), await relay.url("desk")] == ["http://desk/mcp"] * 2
        assert await relay.url("nobody") is None
    assert ways == ["demo/desk", "ended"]


async def test_a_way_that_has_ended_is_made_anew(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent("desk")
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(served(await stack.enter_async_context(agent.app())))
        away = "http://127.0.0.1:1"
        urls = {"desk": [away, str(behind.base_url), away, away], "registry": [stand.url]}
        ended: list[str] = []

        @contextmanager
        def forwarded(namespace: str, member: str):  # type: ignore[no-untyped-def]
            yield (url := urls[member].pop(0))
            ended.append(url)

        monkeypatch.setattr(kubernetes, "forwarded", forwarded)
        relay = Relay(Registry(away), stack.enter_context(ExitStack()), "demo")
        http = await stack.enter_async_context(console.client())
        web = await stack.enter_async_context(served(console.application(relay, http)))
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answer = await web.post("/agents/desk/mcp", json=message)
        assert (answer.status_code, len(agent.heads)) == (400, 1)  # the agent's own: it has no such message
        assert ended == [away]
        relay.forget("desk", f"{away}/mcp")  # of a way before: the one that is there stays
        assert await relay.url("desk") == f"{behind.base_url}/mcp"
        relay.forget("desk", f"{behind.base_url}/mcp")
        assert (await web.post("/agents/desk/mcp", json=message)).status_code == 503
        assert urls == {"desk": [], "registry": []}


def test_the_way_to_the_registry_is_made_anew_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []
    together = threading.Barrier(2, timeout=60)

    @contextmanager
    def forwarded(namespace: str, member: str):  # type: ignore[no-untyped-def]
        ways.append(member)
        yield "http://new"
        ways.append("ended")

    def members(registry: Registry) -> list[Member]:
        if registry.url == "http://old":
            together.wait()
            raise NoRegistry("away")
        return []

    monkeypatch.setattr(kubernetes, "forwarded", forwarded)
    monkeypatch.setattr(locate, "members", members)
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        relay = Relay(Registry("http://old"), stack, "demo")
        assert [*threads.map(lambda _: relay.members(), range(2))] == [[], []]
        assert ways == ["registry"]


def test_no_registry_is_said_before_anything_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["console", "--registry", "http://127.0.0.1:1"]) == 1
    assert "no registry answers at http://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.slow
def test_it_says_where_it_is_and_ends_on_request(stand: Stand, project: Path) -> None:
    program = [Path(sys.executable).with_name("pallas"), "console", str(project)]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split()[0]
        assert url.startswith("http://127.0.0.1:"), process.communicate(timeout=60)
        answer = httpx.get(f"{url}/agents.json", timeout=60)
        assert json.loads(answer.text)["agents"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


async def test_beside_a_supervisor_it_is_there_until_the_end(project: Path, stand: Stand) -> None:
    stand.fleet = {"name": "demo", "placement": "local", "project": run_files.project_id(project / "agents.yaml")}
    async with console.beside(project / "agents.yaml") as line, httpx.AsyncClient(timeout=60) as web:
        url = line.removeprefix("talk to it at ")
        assert "text/html" in (await web.get(url)).headers["content-type"]
        listed = (await web.get(f"{url}/agents.json")).json()
        assert (listed["fleet"], [agent["name"] for agent in listed["agents"]]) == ("demo", ["desk"])
        stand.fleet["name"] = "another"
        refused = await web.get(f"{url}/agents.json")
        assert refused.status_code == 503
        assert "is that of another fleet" in refused.json()["error"]
    async with httpx.AsyncClient(timeout=60) as web:
        with pytest.raises(httpx.ConnectError):
            await web.get(url)


async def test_beside_a_supervisor_it_follows_the_ports_of_the_fleet_file(project: Path, stand: Stand) -> None:
    """`--watch` starts registry and agents again where an edit moves them; a broken edit moves nothing."""
    stand.fleet = {"name": "demo", "placement": "local", "project": run_files.project_id(project / "agents.yaml")}
    now = (project / "agents.yaml").read_text()
    before = now.replace(f"registry_port: {stand.url.rpartition(':')[2]}", f"registry_port: {free_port()}")
    (project / "agents.yaml").write_text(before)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"}
    async with console.beside(project / "agents.yaml") as line, httpx.AsyncClient(timeout=60) as web:
        url = line.removeprefix("talk to it at ")
        agents = url.replace("/console", "/agents")
        assert (await web.get(f"{url}/agents.json")).status_code == 503
        (project / "agents.yaml").write_text("agents: [")
        assert "no registry answers" in (await web.get(f"{url}/agents.json")).json()["error"]
        (project / "agents.yaml").write_text(now)
        at, stand.url = stand.url, "http://127.0.0.1:1"
        assert (await web.get(f"{url}/agents.json")).status_code == 200
        assert (await web.post(f"{agents}/desk/mcp", json=message, headers=headers)).status_code == 503
        stand.url = at
        assert (await web.post(f"{agents}/desk/mcp", json=message, headers=headers)).status_code == 200
