"""Whose human a server may ask, over fast-agent's own connections; whole agents are in tests/agent_runtime/upstream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import mcp_types as t
import pytest
from fast_agent.config import MCPElicitationSettings, MCPServerSettings
from fast_agent.mcp.client_callback_runtime import MCPClientCallbackRuntime
from fast_agent.mcp.client_connection import MCPClientConnection
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from pallas_agent_runtime.calls.elicitation import CannotAsk
from pallas_agent_runtime.engine import human_input

FORM: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "string"}}}
NOBODY = "No human can be asked: no call is under way whose caller could be asked"


class Shop:
    """A server of the handshake era whose tool `order` asks, while `hang` never answers."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []

    def server(self) -> Server[Any]:
        async def tools(ctx: Any, params: Any) -> t.ListToolsResult:
            return t.ListToolsResult(tools=[t.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])

        async def call(ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
            self.sessions.append(ctx.session)
            if params.name == "hang":
                await asyncio.Event().wait()
            if params.name == "refuse":
                raise MCPError(t.INVALID_PARAMS, "sold out")
            return t.CallToolResult(content=[t.TextContent(type="text", text=await self.ask(ctx.request_id))])

        return Server("shop", on_list_tools=tools, on_call_tool=call)

    async def ask(self, request_id: Any = None) -> str:
        """Ask the client, and return its human's answer or why there is none."""
        try:
            result = await self.sessions[-1].elicit_form("Which size?", FORM, request_id)
        except MCPError as error:
            return error.error.message
        return str(result.action)


TOOLS = ("order", "hang", "refuse")


class Caller:
    """A caller that accepts whatever it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def __call__(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        self.asked.append(params)
        return t.ElicitResult(action="accept", content={})


@asynccontextmanager
async def connected(shop: Shop, mode: Any = None) -> AsyncIterator[MCPClientConnection]:
    """Yield a connection as fast-agent makes one, outside of any turn, for an agent that was prepared."""
    config = SimpleNamespace(human_input=False, elicitation_handler=None)
    human_input.prepare({"scout": {"config": config}})
    settings = MCPServerSettings(
        name="shop",
        url="http://shop/mcp",
        elicitation=MCPElicitationSettings(mode=mode) if mode else None,
    )
    callbacks = MCPClientCallbackRuntime("shop", settings, custom_elicitation_handler=config.elicitation_handler)
    transport: Any = shop.server()
    async with MCPClientConnection(transport, callbacks, protocol_mode="legacy") as connection:
        yield connection


async def order(connection: MCPClientConnection) -> str:
    result = await connection.call_tool("order", {})
    return str(result.content[0].text)  # type: ignore[union-attr]


async def test_the_question_of_a_call_goes_to_the_caller_of_its_turn() -> None:
    callers = [Caller(), Caller()]
    async with connected(Shop()) as connection:
        for caller in callers:
            with human_input.of_turn(caller) as questions:
                assert await order(connection) == "accept"
            assert questions.unanswered == 0
    assert [len(caller.asked) for caller in callers] == [1, 1]
    assert human_input._under_way == {}


async def test_a_question_that_comes_late_reaches_no_other_caller() -> None:
    shop = Shop()
    callers = [Caller(), Caller()]
    async with connected(shop) as connection:
        with human_input.of_turn(callers[0]) as questions, pytest.raises(MCPError, match="timed out"):
            await connection.call_tool("hang", {}, read_timeout_seconds=0.5)
        assert questions.unanswered == 1
        assert await shop.ask() == NOBODY
        with human_input.of_turn(callers[1]):
            assert await shop.ask() == NOBODY
    assert [caller.asked for caller in callers] == [[], []]


async def test_a_call_that_the_turn_gave_up_stays_unanswered() -> None:
    shop = Shop()
    async with connected(shop) as connection:
        with human_input.of_turn(Caller()) as questions:
            hanging = asyncio.create_task(connection.call_tool("hang", {}))
            while not shop.sessions:
                await asyncio.sleep(0)
            hanging.cancel()
            await asyncio.wait([hanging])
        assert questions.unanswered == 1


async def test_an_error_is_an_answer() -> None:
    async with connected(Shop()) as connection:
        with human_input.of_turn(Caller()) as questions, pytest.raises(MCPError, match="sold out"):
            await connection.call_tool("refuse", {})
        assert questions.unanswered == 0


@pytest.mark.parametrize(
    ("mode", "answer"), [("forms", "accept"), ("auto-cancel", "cancel"), ("none", "elicitation is switched off")]
)
async def test_the_mode_of_a_server_holds_wherever_it_is_connected(mode: str, answer: str) -> None:
    """A clone of an agent connects its servers itself, in the middle of the turn."""
    caller = Caller()
    with human_input.of_turn(caller):
        async with connected(Shop(), mode) as connection:
            assert await order(connection) == answer
    assert len(caller.asked) == (answer == "accept")


async def test_what_a_turn_leaves_behind_asks_nobody() -> None:
    caller = Caller()
    with human_input.of_turn(caller) as questions:
        pass
    with pytest.raises(CannotAsk, match="no call is under way"):
        await questions.ask(t.ElicitRequestFormParams(message="Which size?", requested_schema=FORM))
    assert caller.asked == []
