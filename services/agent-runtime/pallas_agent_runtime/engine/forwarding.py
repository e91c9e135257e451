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

from pallas_agent_runtime.calls.progress import Progress
from pallas_agent_runtime.config.settings import CONNECT_TIMEOUT
from pallas_contract.probe.probe import Target
from pallas_service.access.caller import Caller

log = structlog.get_logger(__name__)

CLOSE = 1.0
"""Seconds that the end of a session is told for: the turn is over, and the server may be gone."""
PAGES = 20
"""Most pages of tools that are read."""
LONGEST_NAME = 64
"""Where fast-agent cuts the name of a tool."""

MayGoOn = Callable[[str, str, Caller], bool]
"""Server, its URL and the caller -> may the caller's token go there?"""
_Line = tuple[Client, list[t.Tool]]
"""A connection, and the tools at its other end."""


class _Tool(FunctionTool):  # type: ignore[misc]  # fastmcp is not followed: see pyproject.toml
    """A function that takes the arguments as they are: the server checks them."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        result: ToolResult = await self.fn(arguments)
        return result


class Forwarding:
    """The servers to call as the caller; `targets` says where they are and which other headers they want.

    `worth_trying` says of a server whether to connect to it now; within `timeout` seconds one is connected and has
    listed its tools, or the turn goes on without it.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        may_go_on: MayGoOn,
        worth_trying: Callable[[str], bool],
        *,
        timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._targets = targets
        self._may_go_on = may_go_on
        self._worth_trying = worth_trying
        self._timeout = timeout

    @property
    def servers(self) -> frozenset[str]:
        return frozenset(self._targets)

    @asynccontextmanager
    async def lent(
        self, agents: Mapping[str, Any], caller: Caller | None, progress: Progress | None
    ) -> AsyncIterator[None]:
        """Give `agents` the tools of these servers for one turn of `caller`."""
        users = {
            server: [agent for agent in agents.values() if server in agent.config.servers] for server in self.servers
        }
        tried = sorted(server for server in self.servers if users[server] and self._worth_trying(server))
        lines: dict[str, asyncio.Future[_Line | None]] = {server: asyncio.Future() for server in tried}
        async with AsyncExitStack() as stack:
            holding = [asyncio.create_task(self._hold(server, caller, line)) for server, line in lines.items()]
            if holding:
                stack.push_async_callback(_let_go, holding)
                await asyncio.wait(lines.values())  # a turn that is cancelled here cancels no line: `_let_go` does
            for server, line in lines.items():
                if connection := line.result():
                    client, tools = connection
                    for agent in users[server]:
                        _add(stack, agent, server, client=client, tools=tools, progress=progress)
            yield

    async def _hold(self, server: str, caller: Caller | None, line: asyncio.Future[_Line | None]) -> None:
        """Connect, and keep the connection until cancelled: anyio has it closed by the task that opened it."""
        try:
            async with asyncio.timeout(self._timeout) as limit, self._client(server, caller) as client:
                tools = await _tools(client)
                # The limit is for connecting; from here on the turn's own deadline holds.
                limit.reschedule(None)
                line.set_result((client, tools))
                await asyncio.Event().wait()
        except Exception as error:  # as with fast-agent's own connections: the turn goes on without this server
            event = "server_lost" if line.done() else "server_not_attached"
            log.warning(event, server=server, error=type(error).__name__)
        finally:
            if not line.done():
                line.set_result(None)

    @asynccontextmanager
    async def _client(self, server: str, caller: Caller | None) -> AsyncIterator[Client]:
        target = self._targets[server]
        headers = {key: value for key, value in target.headers.items() if key.lower() != "authorization"}
        if caller is not None and self._may_go_on(server, target.url, caller):
            headers["authorization"] = f"Bearer {caller.token}"
        timeout = httpx2.Timeout(self._timeout, read=None)  # the turn has its deadline
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"request": [_hurried]}) as http,
            Client(streamable_http_client(target.url, http_client=http)) as client,
        ):
            yield client


async def _hurried(request: httpx2.Request) -> None:
    """Hurry the end: the SDK waits for the answer to the end of a session as long as for any other."""
    if request.method == "DELETE":
        request.extensions["timeout"] = httpx2.Timeout(CLOSE).as_dict()


async def _let_go(holding: list[asyncio.Task[None]]) -> None:
    for task in holding:
        task.cancel()
    await asyncio.wait(holding)


def _add(
    stack: AsyncExitStack, agent: Any, server: str, *, client: Client, tools: list[t.Tool], progress: Progress | None
) -> None:
    """Give `agent` the tools of `server` until `stack` is closed."""
    for tool in tools:
        if _wanted(agent, server, tool.name):
            made = _made(client, server, tool, progress)
            agent.add_tool(made)
            stack.callback(agent.remove_tool, made.name)


async def _tools(client: Client) -> list[t.Tool]:
    tools: list[t.Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


def _wanted(agent: Any, server: str, tool: str) -> bool:
    """Return whether the agent's definition lets it have the tool (`tools` of an agent card)."""
    filters = agent.config.tools or {}
    return server not in filters or any(fnmatchcase(tool, pattern) for pattern in filters[server])


def _made(client: Client, server: str, tool: t.Tool, progress: Progress | None) -> FunctionTool:
    on_progress = progress.passed_on if progress else None

    async def call(arguments: dict[str, Any]) -> ToolResult:
        result = await client.call_tool(tool.name, arguments, progress_callback=on_progress)
        return ToolResult(result.content, result.structured_content, is_error=bool(result.is_error))

    name = f"{server}__{tool.name}"[:LONGEST_NAME]
    return _Tool(fn=call, name=name, description=tool.description or tool.name, parameters=tool.input_schema)
