"""Connections for one turn, to servers that stop answering: bounded, side by side, and never left behind."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pallas_agent_runtime.engine import Forwarding
from pallas_contract.probe.probe import Target
from pallas_service.access.caller import Caller

CALLER = Caller("alice", "alice", "the-token-of-alice")
PATIENCE = 60.0


class Silent:
    """A server of the handshake era that never answers the `silent` methods; `open` are the requests it is at."""

    url = ""

    def __init__(self, *silent: str, before: Callable[[], Any] | None = None) -> None:
        self.silent, self.before, self.open = silent, before, 0
        self.asked: list[str] = []
        self.heard, self.quiet = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        message = json.loads(await request.body() or b"{}")
        method = message.get("method", request.method)
        self.asked.append(method)
        if method in self.silent:
            self.open += 1
            self.heard.set()
            await receive()  # until the client goes away
            self.open -= 1
            self.quiet.set()
            return
        if method == "tools/list" and self.before:
            await self.before()
        await self._answer(method, message)(scope, receive, send)

    def _answer(self, method: str, message: dict[str, Any]) -> Response:
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "silent", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
        }
        if method in results:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
            return JSONResponse(reply, headers={"mcp-session-id": "s"})
        if "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return Response(status_code=202 if message else 405)


class Agent:
    """What a lent instance is to `Forwarding`."""

    def __init__(self, *servers: str) -> None:
        self.config = SimpleNamespace(servers=list(servers), tools=None)
        self.tools: dict[str, Any] = {}

    def add_tool(self, tool: Any) -> None:
        self.tools[tool.name] = tool

    def remove_tool(self, name: str) -> None:
        del self.tools[name]


@asynccontextmanager
async def served(*apps: Silent) -> AsyncIterator[None]:
    running = []
    for app in apps:
        listener = socket.create_server(("127.0.0.1", 0))
        app.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", lifespan="off"))
        running.append((server, listener, asyncio.create_task(server.serve(sockets=[listener]))))
    try:
        yield
    finally:
        # Last in, first out: as it ends, a server puts back the handler of SIGTERM that it met.
        for server, listener, task in reversed(running):
            server.should_exit = server.force_exit = True
            await asyncio.wait([task], timeout=PATIENCE)  # a connection left behind would keep it for ever
            listener.close()


def lent(
    agent: Agent, worth_trying: bool = True, timeout: float = PATIENCE, **servers: Silent
) -> AbstractAsyncContextManager[None]:
    """The tools of `servers`, lent to `agent` for a turn of alice; her token may go to all of them."""
    targets = {name: Target(server.url) for name, server in servers.items()}
    made = Forwarding(targets, lambda *_: True, lambda _: worth_trying, timeout=timeout)
    return made.lent({"x": agent}, CALLER, None)


async def test_a_server_that_does_not_answer_the_end_of_a_session_holds_nobody_up() -> None:
    server, agent = Silent("DELETE"), Agent("a")
    async with served(server), asyncio.timeout(PATIENCE):
        async with lent(agent, a=server):
            assert list(agent.tools) == ["a__look"]
        assert list(agent.tools) == []
        assert "DELETE" in server.asked
        await server.quiet.wait()


async def test_nor_does_one_that_never_tells_its_tools() -> None:
    server, agent = Silent("DELETE", "tools/list"), Agent("a")
    async with asyncio.timeout(PATIENCE), served(server), lent(agent, timeout=0.5, a=server):
        assert list(agent.tools) == []


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_a_turn_cancelled_while_it_connects_or_asks_leaves_no_connection(method: str) -> None:
    server, agent = Silent(method), Agent("a")

    async def turn() -> None:
        async with lent(agent, a=server):
            await agent.tools["a__look"].run({})

    async with served(server), asyncio.timeout(PATIENCE):
        running = asyncio.create_task(turn())
        await server.heard.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert server.asked[-1] == "DELETE"
        await server.quiet.wait()
        assert server.open == 0


async def test_servers_are_connected_side_by_side() -> None:
    """Each answers only when the other was asked too."""
    both = asyncio.Barrier(2)
    one, other, agent = Silent(before=both.wait), Silent(before=both.wait), Agent("a", "b")
    async with asyncio.timeout(PATIENCE), served(one, other), lent(agent, a=one, b=other):
        assert list(agent.tools) == ["a__look", "b__look"]


async def test_a_server_that_is_not_worth_trying_is_not_asked() -> None:
    server, agent = Silent(), Agent("a")
    async with served(server), asyncio.timeout(PATIENCE):
        async with lent(agent, worth_trying=False, a=server):
            assert list(agent.tools) == []
        assert server.asked == []
