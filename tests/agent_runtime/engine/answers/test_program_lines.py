"""Servers on stdio that write a line without an end, or nearly."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent.mcp import stdio_tracking_simple
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent

from pallas_agent_runtime.engine.answers import program_lines

LIMIT = 1 << 20
VALUES = 1000
SAID = "notes says too much"
SERVER = """
import json, sys

def answer(number, **what):
    print(json.dumps({"jsonrpc": "2.0", "id": number, **what}), flush=True)

def text(number, size):
    answer(number, result={"content": [{"type": "text", "text": "x" * size}]})

INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("never", "size", "endless", "broken", "many")]
for line in sys.stdin:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    arguments = message.get("params", {}).get("arguments", {})
    if method == "initialize":
        answer(number, result=INFO)
    elif method == "tools/list":
        answer(number, result={"tools": TOOLS})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "size":
            text(number, arguments["size"])
        elif name == "endless":
            print("x" * arguments["size"], end="", flush=True)
        elif name == "many":
            answer(number, result={"content": [], "structuredContent": {"a": [1] * arguments["size"]}})
        elif name == "broken":
            print()
            text(number, 1)
"""


@asynccontextmanager
async def connected(tmp_path: Path) -> AsyncIterator[Client]:
    script = tmp_path / "notes.py"
    script.write_text(SERVER)
    parameters = StdioServerParameters(command=sys.executable, args=["-I", str(script)])
    log: Any = SimpleNamespace(server_name="notes", fileno=sys.__stderr__.fileno)
    with program_lines.bounded(LIMIT, VALUES, lambda name, bound: f"{name} says too much{bound}"):
        transport = stdio_tracking_simple.tracking_stdio_client(parameters, errlog=log)
        async with asyncio.timeout(60), Client(transport, mode="legacy") as client:
            yield client


async def size(client: Client, number: int) -> int:
    (content,) = (await client.call_tool("size", {"size": number})).content
    assert isinstance(content, TextContent)
    return len(content.text)


async def test_what_is_not_too_long_comes_through_and_the_rest_is_an_error(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert await size(client, LIMIT - 1000) == LIMIT - 1000
        with pytest.raises(MCPError) as failure:
            await size(client, LIMIT)
        assert failure.value.message == SAID
        assert await size(client, 5) == 5


async def test_a_line_of_too_many_values_is_an_error_too(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert (await client.call_tool("many", {"size": VALUES - 10})).structured_content == {"a": [1] * (VALUES - 10)}
        with pytest.raises(MCPError, match=f"{SAID}{VALUES} values"):
            await client.call_tool("many", {"size": VALUES})
        assert await size(client, 5) == 5


async def test_whoever_waits_is_told_at_once_and_not_at_the_end_of_the_line(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        never = asyncio.create_task(client.call_tool("never"))
        assert await size(client, 5) == 5
        with pytest.raises(MCPError, match=SAID):
            await client.call_tool("endless", {"size": LIMIT * 3 // 2})
        with pytest.raises(MCPError, match=SAID):
            await never
        with pytest.raises(MCPError, match=SAID):  # of the same line
            await client.call_tool("endless", {"size": LIMIT * 3 // 2})
        (content,) = (await client.call_tool("broken")).content
        assert isinstance(content, TextContent)
        assert content.text == "x"
