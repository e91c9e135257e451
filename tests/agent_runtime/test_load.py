"""Several processes of one agent behind one address, and an agent that is told to end while much is under way."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.slow

ERAS = ["2026-07-28", "legacy"]
CALLS, STREAMS = 20, 5


@pytest.fixture
def model(toolkit: Any) -> Iterator[Any]:
    yield from toolkit.serve_model(
        toolkit.Model(lambda body: {"content": f"heard {body['messages'][-1]['content']}"}, models=["m"])
    )


def one(toolkit: Any, folder: Path, model: Any, scope: str) -> Any:
    """The agent `scout` in a folder of its own."""
    agent = {"card": "scout.yaml", "port": toolkit.free_port(), "instance_scope": scope}
    if scope == "request":
        agent["replicas"] = 3
    files = {
        "agents.yaml": {"name": "x", "registry_port": toolkit.free_port(), "agents": {"scout": agent}},
        "scout.yaml": {"type": "agent", "name": "scout", "instruction": "x"},
        "fastagent.config.yaml": {"default_model": "openai.m", "llm_retries": 0},
        ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
    }
    folder.mkdir()
    started = toolkit.Agents(toolkit.write_files(folder, files), parent=toolkit.warm_parent)
    started.start("scout")
    return started


class RoundRobin(httpx2.AsyncBaseTransport):
    """Sends each request to the next replica, as a Service does with its connections."""

    def __init__(self, ports: list[int]) -> None:
        self._ports, self._inner = itertools.cycle(ports), httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(port=next(self._ports))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Late(httpx2.AsyncHTTPTransport):
    """Tells that nobody is there once `over` is set: the SDK's client of the handshake era, which comes back for its
    event stream, gives up its open calls when it hears that."""

    def __init__(self, over: asyncio.Event) -> None:
        super().__init__()
        self._over = over

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except httpx2.ConnectError:
            await self._over.wait()
            raise


def served(replica: Any) -> int:
    """Calls of `send_message` that a replica answered."""
    name = "mcp_server_operation_duration_seconds_count"
    wanted = f'{name}{{error_type="",gen_ai_tool_name="send_message",mcp_method_name="tools/call"}} '
    lines = replica.get("scout", "/metrics")[1].splitlines()
    return sum(int(float(line.removeprefix(wanted))) for line in lines if line.startswith(wanted))


async def test_any_replica_answers_any_call(toolkit: Any, model: Any, tmp_path: Path) -> None:
    """Also those of one client of the handshake era, whose `initialize` only one of them has seen."""
    replicas = [one(toolkit, tmp_path / str(number), model, "request") for number in range(3)]
    try:
        for replica in replicas:
            await asyncio.to_thread(replica.wait, "scout")
        for era in ERAS:
            before = [served(replica) for replica in replicas]
            async with (
                httpx2.AsyncClient(transport=RoundRobin([replica.port("scout") for replica in replicas])) as http,
                Client(streamable_http_client(replicas[0].url("scout"), http_client=http), mode=era) as client,
            ):
                assert len((await client.list_tools()).tools) == 3
                for number in range(9):
                    result = await client.call_tool("send_message", {"message": str(number)})
                    assert (result.content[0].text, result.is_error) == (f"heard {number}", False)
            assert all(served(replica) > count for replica, count in zip(replicas, before, strict=True))
    finally:
        for replica in replicas:
            replica.close()


@pytest.mark.parametrize("patient", [True, False], ids=["in time", "told twice"])
async def test_what_is_under_way_at_the_end_is_answered_or_failed(
    toolkit: Any, model: Any, tmp_path: Path, patient: bool
) -> None:
    """20 calls in both eras, more than are worked on at once, and the event streams of 5 idle sessions."""
    scout = one(toolkit, tmp_path / "scout", model, "connection")
    try:
        await asyncio.to_thread(scout.wait, "scout")
        over = asyncio.Event()
        with contextlib.suppress(httpx2.ConnectError):
            async with contextlib.AsyncExitStack() as stack:
                http = await stack.enter_async_context(httpx2.AsyncClient(transport=Late(over), timeout=60))

                async def client(era: str) -> Client:
                    connected = streamable_http_client(scout.url("scout"), http_client=http)
                    opened = await stack.enter_async_context(Client(connected, mode=era))
                    await opened.list_tools()  # else it does so after its call, when nobody is there any more
                    return opened

                clients = [await client(ERAS[number % 2]) for number in range(CALLS)]
                for _ in range(STREAMS):
                    await client("legacy")
                stack.callback(over.set)
                calls = [asyncio.create_task(each.call_tool("scout", {"message": "slow"})) for each in clients]
                open_ = f"pallas_calls_in_flight {float(CALLS)}"
                await asyncio.to_thread(
                    toolkit.until, lambda: True if open_ in scout.get("scout", "/metrics")[1] else None
                )
                process = scout.running["scout"]
                process.terminate()
                await asyncio.to_thread(toolkit.until, lambda: scout.get("scout", "/readyz")[0] == 503 or None)
                if patient:
                    model.released.set()
                else:
                    process.terminate()
                async with asyncio.timeout(60):
                    answers = await asyncio.gather(*calls)
                assert await asyncio.to_thread(process.wait, 40) == 0
        told = {(answer.content[0].text, answer.is_error) for answer in answers}
        assert told == {("heard slow", False) if patient else ("the agent is shutting down", True)}
        lines = [json.loads(line) for line in scout.log("scout").read_text().splitlines()]
        assert lines[-1]["event"] == "stopped"
        assert [line for line in lines if line["level"] in ("error", "critical")] == []
    finally:
        scout.close()
