"""An agent outside of a fleet that runs, and what it says to register."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pallas_contract.probe import http_client

from .release import Release
from .stack import Stack

TOKEN = "canary-token-0123456789"
CAPABILITIES = {"tools": ["t"], "schema": {"t": {"input": {"symbol": "string"}, "output": {"x": "list[float]"}}}}


@asynccontextmanager
async def outside(port: int = 0) -> AsyncIterator[int]:
    """A minimal MCP agent on every address of this host; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        asked = json.loads(await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0])))
        said = {
            "server/discover": {"supportedVersions": ["2026-07-28"]},
            "tools/call": {"content": [{"type": "text", "text": '{"status": "ok"}'}]},
        }.get(asked["method"], {"tools": []})
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "0.0.0.0", port) as server:
        yield server.sockets[0].getsockname()[1]


async def say(fleet: Stack | Release, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
    body = json.dumps({"method": method, "params": {"agent_id": "feature_extractor", **params}}).encode()
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    reply = await http_client.request("POST", f"{fleet.url('registry')}/mcp", headers=headers, body=body)
    return reply.status, json.loads(reply.body)
