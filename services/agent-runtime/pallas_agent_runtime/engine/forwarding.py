"""Servers that are called with the caller's own token: connected for one turn, and gone with it.

fast-agent keeps its connections, and one that was made for a caller would carry that caller's token to the next. So
these servers never become connections of fast-agent's: their tools are added to the lent instance as functions, under
the names fast-agent would give them, and every turn has a client of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any

import httpx2
import mcp_types as t
import structlog
from fastmcp.tools import FunctionTool, ToolResult
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_agent_runtime.access.callers import Caller
from pallas_agent_runtime.progress import Progress
from pallas_contract.probe import Target

log = structlog.get_logger(__name__)

CONNECT = 5.0
"""Seconds to connect one server and to list its tools before the turn goes on without it."""
PAGES = 20
"""Most pages of tools that are read."""
LONGEST_NAME = 64
"""Where fast-agent cuts the name of a tool."""

MayGoOn = Callable[[str, str, Caller], bool]
"""Server, its URL and the caller -> may the caller's token go there?"""


class _Tool(FunctionTool):  # type: ignore[misc]  # fastmcp is not followed: see pyproject.toml
    """A function that takes the arguments as they are: the server checks them."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        result: ToolResult = await self.fn(arguments)
        return result


class Forwarding:
    """The servers to call as the caller; `targets` says where they are and which other headers they want."""

    def __init__(self, targets: Mapping[str, Target], may_go_on: MayGoOn) -> None:
        self._targets, self._may_go_on = targets, may_go_on

    @property
    def servers(self) -> frozenset[str]:
        return frozenset(self._targets)

    @asynccontextmanager
    async def lent(
        self, agents: Mapping[str, Any], caller: Caller | None, progress: Progress | None
    ) -> AsyncIterator[None]:
        """Give `agents` the tools of these servers for one turn of `caller`."""
        async with AsyncExitStack() as stack:
            for server in sorted(self._targets):
                users = [agent for agent in agents.values() if server in agent.config.servers]
                if users:
                    await self._lend(stack, server, users, caller, progress)
            yield

    async def _lend(
        self, stack: AsyncExitStack, server: str, users: list[Any], caller: Caller | None, progress: Progress | None
    ) -> None:
        own = AsyncExitStack()
        try:
            async with asyncio.timeout(CONNECT):
                client = await own.enter_async_context(self._client(server, caller))
                tools = await _tools(client)
        except Exception as error:  # as with fast-agent's own connections: the turn goes on without this server
            log.warning("server_not_attached", server=server, error=type(error).__name__)
            await own.aclose()
            return
        await stack.enter_async_context(own)
        for agent in users:
            for tool in tools:
                if _wanted(agent, server, tool.name):
                    made = _made(client, server, tool, progress)
                    agent.add_tool(made)
                    stack.callback(agent.remove_tool, made.name)

    @asynccontextmanager
    async def _client(self, server: str, caller: Caller | None) -> AsyncIterator[Client]:
        target = self._targets[server]
        headers = {key: value for key, value in target.headers.items() if key.lower() != "authorization"}
        if caller is not None and self._may_go_on(server, target.url, caller):
            headers["authorization"] = f"Bearer {caller.token}"
        timeout = httpx2.Timeout(CONNECT, read=None)  # the turn has its deadline
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
            Client(streamable_http_client(target.url, http_client=http)) as client,
        ):
            yield client


async def _tools(client: Client) -> list[t.Tool]:
    found: list[t.Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _wanted(agent: Any, server: str, tool: str) -> bool:
    """Whether the agent's definition lets it have the tool (`tools` of an agent card)."""
    filters = agent.config.tools or {}
    return server not in filters or any(fnmatchcase(tool, pattern) for pattern in filters[server])


def _made(client: Client, server: str, tool: t.Tool, progress: Progress | None) -> FunctionTool:
    heard = progress.passed_on if progress else None

    async def call(arguments: dict[str, Any]) -> ToolResult:
        result = await client.call_tool(tool.name, arguments, progress_callback=heard)
        return ToolResult(result.content, result.structured_content, is_error=bool(result.is_error))

    name = f"{server}__{tool.name}"[:LONGEST_NAME]
    return _Tool(fn=call, name=name, description=tool.description or tool.name, parameters=tool.input_schema)
