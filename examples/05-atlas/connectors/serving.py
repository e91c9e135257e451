"""What the three servers share: tools whose problems are told as such, a limit of their time, and where they listen."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from connectors.problems import Problem

Tool = Callable[..., Awaitable[dict[str, Any]]]


def server(name: str, tools: list[Tool]) -> MCPServer:
    """Return an MCP server with tools; a `Problem` of theirs is a tool error, and says what it says."""
    mcp = MCPServer(name, version="1.0.0", log_level="WARNING")
    for tool in tools:
        mcp.tool()(_told(tool))
    return mcp


def _told(tool: Tool) -> Tool:
    @functools.wraps(tool)
    async def told(**arguments: Any) -> dict[str, Any]:
        try:
            return await tool(**arguments)
        except Problem as error:
            raise ToolError(str(error)) from None

    return told


async def within[T](seconds: float, late: str, function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns that waits for a server, in a thread.

    Raises:
        Problem: it says `late` where that takes more than `seconds`. The thread ends with its connection.
    """
    try:
        return await asyncio.wait_for(asyncio.to_thread(function, *arguments), seconds)
    except TimeoutError:
        raise Problem(late) from None


def run(name: str, tools: Callable[[], list[Tool]]) -> int:
    """Serve on PALLAS_BIND until the end, and return an exit code; `tools` raises a `Problem` where it cannot be."""
    try:
        mcp = server(name, tools())
    except Problem as error:
        print(error, file=sys.stderr)
        return 1
    security = TransportSecuritySettings(allowed_hosts=os.environ["PALLAS_ALLOWED_HOSTS"].split(","))
    app = mcp.streamable_http_app(stateless_http=True, transport_security=security)
    address, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    uvicorn.run(app, host=address, port=int(port), log_level="warning", timeout_graceful_shutdown=3)
    return 0
