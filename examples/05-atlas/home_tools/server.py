"""The server: `python -m home_tools.server` serves the tools of tools.yaml, and fires timers meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from home_tools.clock import SystemClock
from home_tools.home import Home, opened
from home_tools.problems import Problem
from home_tools.settings import Settings
from home_tools.timers.running import Webhook
from home_tools.tools import Tool, Tools, notes, talk, tasks, timers

_ROOMS = (talk, timers, tasks, notes)


def server(home: Home) -> MCPServer:
    """Return an MCP server with the tools of `home.settings`; a `Problem` of theirs is a tool error, in its words.

    Raises:
        Problem: one of them is not there.
    """
    mcp = MCPServer("home_tools", version="1.0.0", log_level="WARNING")
    there = tools(home)
    if unknown := sorted(set(home.settings.tools) - set(there)):
        raise Problem(f"tools.yaml: tools: there is no {', '.join(unknown)}, only {', '.join(sorted(there))}")
    for name, description in home.settings.tools.items():
        text = "str" in str(there[name].__annotations__.get("return"))
        mcp.add_tool(_told(there[name]), name, description=description, structured_output=False if text else None)
    return mcp


def tools(home: Home) -> Tools:
    """Return all tools that there are, by name."""
    return {name: tool for room in _ROOMS for name, tool in room.tools(home).items()}


def _told(function: Tool) -> Tool:
    @functools.wraps(function)
    async def answered(**arguments: Any) -> Any:
        try:
            return await function(**arguments)
        except Problem as error:
            raise ToolError(str(error)) from None

    return answered


@contextlib.asynccontextmanager
async def firing(home: Home) -> AsyncIterator[None]:
    """Have timers fire within, and the webhook told of it."""
    async with asyncio.TaskGroup() as group, httpx2.AsyncClient(timeout=10, trust_env=False) as client:
        running = [group.create_task(home.timers.run())]
        if home.settings.webhook:
            webhook = Webhook(home.settings.webhook, home.settings.webhook_token, home.timers, client)
            running.append(group.create_task(webhook.run()))
        try:
            yield
        finally:
            for task in running:
                task.cancel()


async def serve(home: Home, mcp: MCPServer) -> None:
    """Serve on PALLAS_BIND until it is told to stop."""
    security = TransportSecuritySettings(allowed_hosts=os.environ["PALLAS_ALLOWED_HOSTS"].split(","))
    app = mcp.streamable_http_app(stateless_http=True, transport_security=security)
    address, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    config = uvicorn.Config(app, host=address, port=int(port), log_level="warning", timeout_graceful_shutdown=3)
    async with firing(home):
        await uvicorn.Server(config).serve()


def main() -> int:
    """Serve; 1 where it cannot begin, with the reason on stderr."""
    try:
        home = opened(Settings.read(), SystemClock())
        mcp = server(home)
    except Problem as error:
        print(error, file=sys.stderr)
        return 1
    asyncio.run(serve(home, mcp))
    return 0


if __name__ == "__main__":
    sys.exit(main())
