"""`/metrics` of running agents: each metric, as what it counts happens; and no series that callers make up."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
import pytest
from mcp import Client

from pallas_contract import names

pytestmark = [pytest.mark.slow, pytest.mark.waits]

MODERN, LEGACY = ERAS = ["2026-07-28", "legacy"]
SECONDS = "mcp_server_operation_duration_seconds"
IN_FLIGHT = "pallas_calls_in_flight"


def operation(part: str, method: str, tool: str = "", error: str = "") -> str:
    return f'{SECONDS}_{part}{{error_type="{error}",gen_ai_tool_name="{tool}",mcp_method_name="{method}"}}'


async def ask(chain: Any, era: str, message: Any, agent: str = "front", **meta: str) -> bool:
    """Whether the answer is an error."""
    carried: Any = {getattr(names, key): value for key, value in meta.items()} or None
    async with Client(chain.agents.url(agent), mode=era) as client:
        return bool((await client.call_tool(agent, {"message": message}, meta=carried)).is_error)


class Counted:
    """How much a series of an agent grew."""

    def __init__(self, chain: Any, agent: str) -> None:
        self._chain, self._agent, self._before = chain, agent, chain.metrics(agent)

    def __call__(self, series: str) -> float:
        return float(self._chain.metrics(self._agent).get(series, 0.0) - self._before.get(series, 0.0))


@pytest.mark.parametrize("era", ERAS)
async def test_operations_are_timed_by_method_tool_and_outcome(chain: Any, era: str) -> None:
    chain.forget()
    grown = Counted(chain, "front")
    assert not await ask(chain, era, "hello")
    assert await ask(chain, era, 7)
    assert await ask(chain, era, "to middle slow", META_SECONDS="0.2")
    assert grown(operation("count", "tools/call", "front")) == 1
    assert 0 < grown(operation("sum", "tools/call", "front")) < 60
    assert grown(operation("count", "tools/call", "front", "tool_error")) == 2
    assert grown(operation("sum", "tools/call", "front", "tool_error")) >= 0.2
    assert grown(operation("count", "tools/list")) == 1  # which the client asks for after its first answer


@pytest.mark.parametrize("era", ERAS)
async def test_open_calls_are_counted_while_they_are_open(chain: Any, toolkit: Any, era: str) -> None:
    chain.forget()
    grown = Counted(chain, "front")

    def open_calls(number: int) -> bool | None:
        return chain.metrics("front")[IN_FLIGHT] == chain.metrics("leaf")[IN_FLIGHT] == number or None

    async with AsyncExitStack() as stack:  # a client each: the turns of one session follow each other
        clients = [await stack.enter_async_context(Client(chain.agents.url("front"), mode=era)) for _ in range(3)]
        await asyncio.to_thread(toolkit.until, lambda: open_calls(0))
        message = {"message": "to middle to leaf slow"}
        waiting = [asyncio.create_task(client.call_tool("front", message)) for client in clients]
        await asyncio.to_thread(toolkit.until, lambda: open_calls(3))
        waiting.pop().cancel()
        await asyncio.to_thread(toolkit.until, lambda: open_calls(2))
        chain.model.released.set()
        await asyncio.gather(*waiting)
    assert open_calls(0)
    assert grown(operation("count", "tools/call", "front", "cancelled")) == 1


async def test_the_depth_of_a_question_is_counted_where_it_arrives(chain: Any) -> None:
    grown = {name: Counted(chain, name) for name in ("front", "middle", "leaf")}
    await ask(chain, MODERN, "to middle to leaf hello")
    for depth, name in enumerate(grown):
        below = [grown[name](f'pallas_delegation_depth_bucket{{le="{bound:.1f}"}}') for bound in (0, 1, 2, 3)]
        assert below == [float(depth <= bound) for bound in (0, 1, 2, 3)]


async def test_servers_and_health_are_as_they_were_seen_last(chain: Any, toolkit: Any) -> None:
    def seen(agent: str, server: str, up: float, health: float) -> bool | None:
        found = chain.metrics(agent)
        pair = found.get(f'pallas_downstream_up{{server="{server}"}}'), found[f'pallas_agent_health{{agent="{agent}"}}']
        return pair == (up, health) or None

    await asyncio.to_thread(toolkit.until, lambda: seen("leaf", "argos", 1, 1))
    chain.wire.turn("silent")
    try:
        await asyncio.to_thread(toolkit.until, lambda: seen("leaf", "argos", 0, 0.5))
        assert seen("middle", "leaf", 1, 1)  # an agent that is degraded is reachable
    finally:
        chain.wire.turn("")
    await asyncio.to_thread(toolkit.until, lambda: seen("leaf", "argos", 1, 1))
    assert chain.metrics("leaf")['pallas_llm_preflight_ok{provider="openai"}'] == 1  # and 0: test_provider_down.py


async def test_what_callers_make_up_becomes_one_series(chain: Any) -> None:
    """Two hundred names of tools, methods and prompts, in all that a caller can name: no series for any of them."""

    async def send(http: httpx2.AsyncClient, method: str, name: str) -> None:
        known = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": name, "version": name}}
        meta: dict[str, Any] = {f"io.modelcontextprotocol/{key}": value for key, value in known.items()}
        meta |= {"progressToken": name, names.META_TASK: name, names.META_PATH: f"x/{name}"}
        params = {"name": name, "arguments": {}, "_meta": meta}
        headers = {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": name}
        body = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        with suppress(httpx2.ReadTimeout):
            await http.post(chain.agents.url("front"), headers=headers, json=body)

    headers = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:

        async def all_of(name: str) -> None:
            for method in ("tools/call", "prompts/get", f"made/{name}"):
                await send(http, method, name)

        await all_of("first")
        before, grown = set(chain.metrics("front")), Counted(chain, "front")
        for number in range(0, 200, 20):
            await asyncio.gather(*(all_of(f"name-{number + one}") for one in range(20)))
    assert set(chain.metrics("front")) == before
    assert grown(operation("count", "tools/call", "_OTHER", "-32602")) == 200
    assert not [series for series in before if "first" in series or "made" in series]
