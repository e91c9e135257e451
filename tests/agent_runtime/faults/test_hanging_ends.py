"""Servers, and a collector, that hang when they are to let go: nothing of them stays, and no end of an agent waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.waits]

PROGRAM = """
import json, os, signal, sys, time

parent = os.getppid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "stubborn", "version": "1"},
        },
        "tools/list": {"tools": []},
    }
    if request["method"] in results:
        answer = {"result": results[request["method"]]}
    else:
        answer = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
while os.getppid() == parent:
    time.sleep(0.5)
"""
"""It ends with its parent alone, as when a test has killed that."""
AT_ONCE = 3
BOUND = 20.0
"""Seconds for an end, on a busy machine: it takes 8 at most (shutdown.END), where one server alone took minutes."""


class Scout:
    """An agent whose servers are well as long as they are used; all that it says goes to `log`."""

    def __init__(self, agents: Any, argos: Any) -> None:
        self.agents, self.argos = agents, argos

    async def ask(self, message: str) -> str:
        async with Client(self.agents.url("scout")) as client:
            (block,) = (await client.call_tool("scout", {"message": message})).content
        text: str = block.text
        return text

    def lines(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.agents.log("scout").read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.fixture
def scout(toolkit: Any, parts: Any, tmp_path: Any) -> Iterator[Scout]:
    """With a session of the handshake era, a program, and a server and a collector that are silent from the start."""
    with ExitStack() as stack:
        argos = stack.enter_context(parts.argos_serving())
        argos.hangs = True
        silent, collector = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        servers = {
            "argos": {"url": f"http://127.0.0.1:{argos.port}/mcp", "protocol_mode": "legacy"},
            "silent": {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"},
            "stubborn": {"command": sys.executable, "args": ["stubborn.py"]},
        }
        model = stack.enter_context(parts.modelling(toolkit))
        files = {
            "agents.yaml": {
                "name": "h",
                "registry_port": toolkit.free_port(),
                "agents": {"scout": {"card": "scout.md", "port": toolkit.free_port()}},
            },
            "scout.md": f"---\ntype: agent\nname: scout\nservers: [{', '.join(servers)}]\n---\nYou are Scout.\n",
            "stubborn.py": PROGRAM,
            "fastagent.config.yaml": {"default_model": "openai.m", "mcp": {"servers": servers}},
            ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
        }
        endpoint = f"http://127.0.0.1:{collector.getsockname()[1]}"
        folder = toolkit.write_files(tmp_path, files)
        agents = stack.enter_context(toolkit.running(folder, "scout", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint))
        yield Scout(agents, argos)


async def test_nothing_that_hangs_holds_up_the_end_of_an_agent(scout: Scout) -> None:
    answers = await asyncio.gather(*(scout.ask("use argos__search x") for _ in range(AT_ONCE)))
    assert answers == ["got found x"] * AT_ONCE
    assert await asyncio.to_thread(scout.agents.end, "scout", BOUND) == 0
    assert {line["server"] for line in scout.lines("session_not_ended")} == {"argos"}
    assert scout.lines("stopped")


async def test_of_a_turn_that_was_cancelled_no_connection_stays(scout: Scout) -> None:
    asked = asyncio.create_task(scout.ask("use argos__hold x"))
    assert await asyncio.to_thread(scout.argos.held.wait, BOUND)
    asked.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    assert await asyncio.to_thread(scout.argos.told.acquire, timeout=BOUND)
    assert await asyncio.to_thread(scout.argos.left.acquire, timeout=BOUND)
    async with asyncio.timeout(BOUND):
        while not scout.lines("session_not_ended"):  # it is said once the connection has gone
            await asyncio.sleep(0.05)
    assert [line["server"] for line in scout.lines("session_not_ended")] == ["argos"]
    assert await scout.ask("use argos__search x") == "got found x"
