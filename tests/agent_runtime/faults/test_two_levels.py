"""A question that goes through two agents to a third: what is heard of it on the way, and who stops when it is taken
back or when the last one dies."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import Client

from pallas_contract import names

pytestmark = [pytest.mark.slow, pytest.mark.waits]

MODERN, LEGACY = ERAS = ["2026-07-28", "legacy"]
LEVELS = ("front", "middle", "leaf")
LINES = [
    "front step 1 (llm)",
    "front step 2 (tool)",
    "middle/middle__middle: started",
    "middle step 1 (llm)",
    "middle step 2 (tool)",
    "leaf/leaf__leaf: started",
    "leaf step 1 (llm)",
    "leaf step 2 (tool)",
    "argos/search: started",
    "argos/search: completed",
    "leaf step 3 (llm)",
    "leaf/leaf__leaf: completed",
    "middle step 3 (llm)",
    "middle/middle__middle: completed",
    "front step 3 (llm)",
]
Heard = list[tuple[float, float | None, str | None]]


async def ask(chain: Any, era: str, message: str) -> tuple[str, Heard]:
    """What `front` answers, and the progress on the way."""
    heard: Heard = []

    async def hear(progress: float, total: float | None, text: str | None) -> None:
        heard.append((progress, total, text))

    async with Client(chain.agents.url("front"), mode=era) as client:
        result = await client.call_tool("front", {"message": message}, progress_callback=hear)
    (block,) = result.content
    return block.text, heard


# --- progress ---


@pytest.mark.parametrize("era", ERAS)
async def test_every_step_of_every_level_is_heard(chain: Any, era: str) -> None:
    text, heard = await ask(chain, era, "to middle to leaf use argos__search x")
    assert text == "got got got found x"
    assert [line for *_, line in heard] == LINES
    assert [progress for progress, *_ in heard] == list(range(1, len(LINES) + 1))
    assert [total for _, total, _ in heard] == [
        number if line.endswith(": completed") else None for number, line in enumerate(LINES, 1)
    ]


@pytest.mark.parametrize("token", [None, "tok-1", 0])
@pytest.mark.parametrize("era", ERAS)
async def test_only_who_asks_for_progress_hears_of_it(chain: Any, era: str, token: str | int | None) -> None:
    async with raw(chain.agents.url("front"), era) as send:
        meta = {} if token is None else {"progressToken": token}
        reply = await send(ask_front("to middle to leaf use argos__search x", meta))
    messages = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    messages = messages or [reply.json()]
    told = [message["params"] for message in messages if message.get("method") == "notifications/progress"]
    assert [(one["progressToken"], one["message"]) for one in told] == [
        (token, line) for line in (LINES if token is not None else [])
    ]
    assert messages[-1]["result"]["content"] == [{"type": "text", "text": "got got got found x"}]


# --- taken back ---

MESSAGES = {"model": "to middle to leaf slow", "tool": "to middle to leaf use argos__hold x"}


@pytest.fixture(params=MESSAGES)
def work(request: pytest.FixtureRequest, chain: Any) -> Any:
    """What `leaf` is at when the question is taken back: the message, the events of its begin and of its end."""
    chain.forget()
    model, argos = (chain.model.entered, chain.model.abandoned), (chain.argos.held, chain.argos.given_up)
    begun, ended = model if request.param == "model" else argos
    made = SimpleNamespace(message=MESSAGES[request.param], begun=begun, ended=ended, task=uuid.uuid4().hex)
    made.cancelled = {name: cancelled(chain, name) for name in LEVELS}
    yield made
    chain.model.released.set()


def cancelled(chain: Any, name: str) -> float:
    """How many calls of an agent were taken back, whatever their tool."""
    counted = 'mcp_server_operation_duration_seconds_count{error_type="cancelled",'
    return float(sum(value for series, value in chain.metrics(name).items() if series.startswith(counted)))


async def stopped(chain: Any, work: Any, toolkit: Any) -> None:
    """The work at the end of the chain is given up, nobody is at it any more, and each level says so."""
    assert await asyncio.to_thread(work.ended.wait, 60)

    def idle() -> bool | None:
        return not any(chain.metrics(name)["pallas_calls_in_flight"] for name in LEVELS) or None

    await asyncio.to_thread(toolkit.until, idle)
    for name in LEVELS:
        assert cancelled(chain, name) == work.cancelled[name] + 1
        lines = [json.loads(line) for line in chain.agents.log(name).read_text().splitlines()]
        assert [line["event"] for line in lines if line.get("task") == work.task] == ["call_cancelled"]
    chain.model.released.set()
    assert (await ask(chain, MODERN, "to middle to leaf hello"))[0] == "got got hello"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cancels_stops_the_leaf(chain: Any, toolkit: Any, work: Any, era: str) -> None:
    meta: Any = {names.META_TASK: work.task}
    async with Client(chain.agents.url("front"), mode=era) as client:
        waiting = asyncio.create_task(client.call_tool("front", {"message": work.message}, meta=meta))
        assert await asyncio.to_thread(work.begun.wait, 60)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await stopped(chain, work, toolkit)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_hangs_up_stops_the_leaf(chain: Any, toolkit: Any, work: Any, era: str) -> None:
    """The connection of the call is closed, without a word about it."""
    async with raw(chain.agents.url("front"), era) as send:
        waiting = asyncio.create_task(send(ask_front(work.message, {names.META_TASK: work.task})))
        assert await asyncio.to_thread(work.begun.wait, 60)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await stopped(chain, work, toolkit)


async def test_a_cancellation_in_words_stops_the_leaf(chain: Any, toolkit: Any, work: Any) -> None:
    """`notifications/cancelled`, while the connection of the call stays open."""
    async with raw(chain.agents.url("front"), LEGACY) as send:
        waiting = asyncio.create_task(send(ask_front(work.message, {names.META_TASK: work.task})))
        assert await asyncio.to_thread(work.begun.wait, 60)
        said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "enough"}}
        assert (await send(said)).status_code == 202
        await stopped(chain, work, toolkit)
        waiting.cancel()


async def test_a_session_that_is_ended_stops_the_leaf(chain: Any, toolkit: Any, work: Any) -> None:
    async with raw(chain.agents.url("front"), LEGACY) as send:
        waiting = asyncio.create_task(send(ask_front(work.message, {names.META_TASK: work.task})))
        assert await asyncio.to_thread(work.begun.wait, 60)
        assert (await send(None)).status_code == 200
        await stopped(chain, work, toolkit)
        waiting.cancel()


# --- killed ---


@pytest.mark.parametrize("era", ERAS)
async def test_a_leaf_that_is_killed_is_a_tool_error_that_names_it(chain: Any, era: str) -> None:
    chain.forget()
    waiting = asyncio.create_task(ask(chain, era, "to middle to leaf slow"))
    assert await asyncio.to_thread(chain.model.entered.wait, 60)
    chain.agents.kill("leaf")
    chain.model.released.set()
    text, heard = await waiting
    chain.agents.start("leaf")
    await asyncio.to_thread(chain.agents.wait, "leaf")
    lines = [line for *_, line in heard]
    assert "leaf/leaf__leaf: failed" in lines  # what is said of a result with isError, and of no other
    assert "middle/middle__middle: completed" in lines
    assert text.startswith("got got ")
    assert "'leaf'" in text
    assert (await ask(chain, era, "to middle to leaf hello"))[0] == "got got hello"


# --- a client of our own ---


def ask_front(message: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    params = {"name": "front", "arguments": {"message": message}, "_meta": meta or {}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


@asynccontextmanager
async def raw(url: str, era: str) -> AsyncIterator[Any]:
    """Sends one message and gives its reply, in a session where the era has them; nothing ends that session."""
    headers = {"accept": "application/json, text/event-stream"}
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:

        async def send(message: dict[str, Any] | None) -> httpx2.Response:
            if message is None:
                return await http.delete(url)
            if era == MODERN:
                known = {"protocolVersion": era, "clientCapabilities": {}, "clientInfo": about["clientInfo"]}
                message["params"]["_meta"] |= {f"io.modelcontextprotocol/{key}": value for key, value in known.items()}
            return await http.post(url, json=message)

        if era == MODERN:
            http.headers |= {"mcp-protocol-version": era, "mcp-method": "tools/call", "mcp-name": "front"}
        else:
            opened = await send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
            http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
            await send({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}})
        yield send
