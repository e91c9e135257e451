"""Sessions of the handshake era on real agents: ended by their client, or after some time without a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.slow

IDLE = 2.0
SET = """
import sys
from pallas_agent_runtime import cli
from pallas_agent_runtime.web import sessions
sessions.{} = {}
sys.exit(cli.main())
"""
"""An agent as any other, but for the half hour, or the thousand."""
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture(scope="module")
def model(toolkit: Any) -> Iterator[Any]:
    yield from toolkit.serve_model(
        toolkit.Model(lambda body: {"content": toolkit.said(body["messages"][-1])}, models=["m"])
    )


@pytest.fixture(scope="module")
def fleet(model: Any, toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    names = ("scout", "hasty", "small")
    files: dict[str, Any] = {
        "agents.yaml": {
            "name": "x",
            "registry_port": toolkit.free_port(),
            "agents": {name: {"card": f"{name}.yaml", "port": toolkit.free_port()} for name in names},
        },
        "fastagent.config.yaml": {"default_model": "openai.m", "llm_retries": 0},
        ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
    }
    files |= {f"{name}.yaml": {"type": "agent", "name": name, "instruction": "x"} for name in names}
    with toolkit.running(toolkit.write_files(tmp_path_factory.mktemp("sessions"), files), "scout") as started:
        started.start("hasty", SET.format("IDLE_SESSION", IDLE))
        started.start("small", SET.format("SESSIONS", 2))
        started.wait("hasty", "small")
        yield started


class Session:
    """A session by hand: a client of the SDK would open a new one by itself."""

    def __init__(self, http: httpx2.AsyncClient, agents: Any, name: str) -> None:
        self._http, self._url, self._name = http, agents.url(name), name
        self.headers = {"accept": "application/json, text/event-stream"}

    async def open(self) -> Session:
        reply = await self.post("initialize", ABOUT)
        self.headers["mcp-session-id"] = reply.headers["mcp-session-id"]
        return self

    async def post(self, method: str = "tools/list", params: Any = None) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return await self._http.post(self._url, json=body, headers=self.headers)

    async def send(self, method: str) -> int:
        """The status of a request without a body."""
        return (await self._http.request(method, self._url, headers=self.headers)).status_code

    async def say(self, message: str) -> str:
        return (await self.post("tools/call", {"name": self._name, "arguments": {"message": message}})).text

    async def history(self) -> str:
        return (await self.post("prompts/get", {"name": f"{self._name}_history"})).text

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[httpx2.Response]:
        async with self._http.stream("GET", self._url, headers=self.headers) as stream:
            assert stream.status_code == 200
            yield stream

    async def over(self) -> None:
        """Wait for its end. To ask is to use it, so it is left alone in between."""
        while (await self.post()).status_code != 404:
            await asyncio.sleep(1.2 * IDLE)


async def test_a_session_that_its_client_ends_is_gone(fleet: Any) -> None:
    async with httpx2.AsyncClient(timeout=60) as http, asyncio.timeout(180):
        one, other = [await Session(http, fleet, "scout").open() for _ in range(2)]
        assert "remember" in await one.say("remember")
        assert "remember" in await one.history()
        async with one.listening() as stream:
            assert await one.send("DELETE") == 200
            await stream.aread()  # its stream ends with it
        assert [(await one.post()).status_code, await one.send("GET"), await one.send("DELETE")] == [404] * 3
        assert (await other.post()).status_code == 200
        assert "remember" not in await (await Session(http, fleet, "scout").open()).history()


async def test_a_session_that_nobody_uses_ends_and_one_in_use_does_not(fleet: Any, model: Any) -> None:
    """A stream that is open, and a call that is being answered, are uses."""
    async with httpx2.AsyncClient(timeout=60) as http, asyncio.timeout(180):
        quiet, listening, working = [await Session(http, fleet, "hasty").open() for _ in range(3)]
        async with listening.listening():
            asked = asyncio.create_task(working.say("slow"))
            assert await asyncio.to_thread(model.entered.wait, 30)
            await quiet.over()
            assert [await quiet.send(method) for method in ("GET", "DELETE")] == [404] * 2
            assert (await listening.post()).status_code == 200
            model.released.set()
            assert '"isError":false' in await asked
        await listening.over()
        await working.over()


async def test_one_session_too_many_ends_the_one_that_nobody_uses(fleet: Any) -> None:
    async with httpx2.AsyncClient(timeout=60) as http:
        unused, used = [await Session(http, fleet, "small").open() for _ in range(2)]
        for _ in range(3):
            assert (await used.post()).status_code == 200
        newest = await Session(http, fleet, "small").open()
        assert [(await session.post()).status_code for session in (unused, used, newest)] == [404, 200, 200]
        metrics = (await http.get(fleet.url("small").replace("/mcp", "/metrics"))).text
        assert "pallas_sessions 2.0\n" in metrics
        assert "pallas_sessions_ended_total 1.0\n" in metrics
