"""Three real agents that can ask each other, also in a circle: what travels with a question, and what stops it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client

from pallas_contract import names

pytestmark = [pytest.mark.slow, pytest.mark.waits]

NAMES = ("first", "second", "third")


def calls(text: str) -> list[dict[str, Any]]:
    """`to A,B rest` -> calls of A and of B, side by side, with the message `rest`."""
    agents, rest = text.removeprefix("to ").split(" ", 1)
    functions = [{"name": f"{name}__{name}", "arguments": json.dumps({"message": rest})} for name in agents.split(",")]
    return [{"index": i, "id": f"c{i}", "type": "function", "function": one} for i, one in enumerate(functions)]


@pytest.fixture(scope="module")
def model(toolkit: Any) -> Iterator[Any]:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        if last["role"] == "tool":
            answers = [toolkit.said(message) for message in body["messages"] if message["role"] == "tool"]
            return {"content": "got " + " & ".join(answers)}
        text = toolkit.said(last)
        return {"content": "", "tool_calls": calls(text)} if text.startswith("to ") else {"content": text}

    yield from toolkit.serve_model(toolkit.Model(answer, models=["m"]))


@pytest.fixture(scope="module")
def fleet(model: Any, toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    ports = {name: toolkit.free_port() for name in NAMES}
    agents: dict[str, Any] = {name: {"card": f"{name}.yaml", "port": ports[name]} for name in NAMES}
    agents["first"]["depends_on"] = ["second", "third"]
    agents["second"]["depends_on"] = ["third"]
    agents["third"]["env"] = {names.ENV_MAX_DEPTH: "2"}
    servers = {"first": ["second", "third"], "second": ["first", "third"], "third": []}
    files: dict[str, Any] = {
        "agents.yaml": {"name": "c", "namespace": "x", "registry_port": toolkit.free_port(), "agents": agents},
        "fastagent.config.yaml": {
            "default_model": "openai.m",
            "llm_retries": 3,
            "mcp": {"servers": {"first": {"url": f"http://127.0.0.1:{ports['first']}/mcp"}}},
        },
        ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
    }
    for name in NAMES:
        files[f"{name}.yaml"] = {"type": "agent", "name": name, "instruction": "x", "servers": servers[name]}
    with toolkit.running(toolkit.write_files(tmp_path_factory.mktemp("chain"), files), *NAMES) as started:
        yield started


async def ask(fleet: Any, era: str, message: str, **meta: str) -> tuple[str, bool]:
    """What `first` answers, and whether that is an error; a key of `meta` is one of `contract.names`."""
    carried: Any = {getattr(names, key): value for key, value in meta.items()} or None
    async with Client(fleet.url("first"), mode=era) as client:
        result = await client.call_tool("first", {"message": message}, meta=carried)
    (block,) = result.content
    return block.text, result.is_error


def logged(fleet: Any, name: str, task: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in fleet.log(name).read_text().splitlines()]
    return [line for line in lines if line.get("task") == task]


async def test_a_task_is_logged_under_one_id_at_every_hop(fleet: Any, era: str) -> None:
    task = f"chain-{era}"
    assert await ask(fleet, era, "to second,second,third hello", META_TASK=task) == ("got hello & hello & hello", False)
    hops = {
        name: [(line["event"], line["depth"], line["path"]) for line in logged(fleet, name, task)] for name in NAMES
    }
    assert hops == {
        "first": [("call", 0, "x/first")],
        "second": [("call", 1, "x/first -> x/second")] * 2,
        "third": [("call", 1, "x/first -> x/third")],
    }


async def test_two_tasks_at_once_are_not_mixed_up(fleet: Any, era: str) -> None:
    tasks = [f"many-{number}-{era}" for number in range(6)]
    await asyncio.gather(*(ask(fleet, era, f"to second {task}", META_TASK=task) for task in tasks))
    assert [len(logged(fleet, "second", task)) for task in tasks] == [1] * 6


async def test_a_circle_is_a_tool_error_that_names_the_path(fleet: Any, era: str) -> None:
    text, _ = await ask(fleet, era, "to second to first hello", META_TASK=f"circle-{era}")
    assert "delegation goes in a circle: x/first -> x/second -> x/first" in text
    hops = [(line["depth"], line["failed"]) for name in NAMES for line in logged(fleet, name, f"circle-{era}")]
    assert hops == [(2, True), (0, False), (1, False)]


async def test_too_deep_a_chain_is_a_tool_error_that_names_the_path(fleet: Any, era: str) -> None:
    text, _ = await ask(fleet, era, "to second to third hello")
    assert "delegation is more than 2 agents deep: x/first -> x/second -> x/third" in text


async def test_a_caller_can_set_a_deadline_that_also_bounds_retries(fleet: Any, era: str, model: Any) -> None:
    """fast-agent would wait 10 s, 20 s and 30 s between its attempts."""
    model.broken, started = True, time.monotonic()
    try:
        answer = await ask(fleet, era, "hello", META_SECONDS="1.5")
    finally:
        model.broken = False
    assert answer == ("no answer before the task's deadline: x/first", True)
    assert time.monotonic() - started < 8


async def test_the_deadline_travels(fleet: Any, era: str, model: Any) -> None:
    model.entered.clear()
    model.released.clear()
    answer = await ask(fleet, era, "to second slow", META_SECONDS="2", META_TASK=f"slow-{era}")
    model.released.set()
    assert answer == ("no answer before the task's deadline: x/first", True)
    assert await ask(fleet, era, "to second hello") == ("got hello", False)


async def test_a_malformed_task_is_a_tool_error_that_names_the_key(fleet: Any, era: str) -> None:
    text, failed = await ask(fleet, era, "hello", META_PATH="?")
    assert (text.startswith("_meta.io.pallas-kit/path: must be "), failed) == (True, True)


def test_the_depth_is_counted(fleet: Any) -> None:
    lines = fleet.get("second", "/metrics")[1].splitlines()
    assert 'pallas_delegation_depth_bucket{le="0.0"} 0.0' in lines
    assert 'pallas_delegation_depth_bucket{le="1.0"} 0.0' not in lines


# --- faults ---


async def test_a_legacy_client_that_cancels_stops_the_turn(fleet: Any, model: Any) -> None:
    """`notifications/cancelled` in a session, while the connection of the call stays open."""
    for event in (model.entered, model.released, model.abandoned):
        event.clear()
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    asked = {"name": "first", "arguments": {"message": "slow"}}
    async with httpx2.AsyncClient(timeout=30) as http:
        http.headers["accept"] = "application/json, text/event-stream"

        async def send(method: str, params: dict[str, Any], **number: int) -> httpx2.Response:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **number}
            return await http.post(fleet.url("first"), json=message)

        opened = await send("initialize", about, id=1)
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        await send("notifications/initialized", {})
        waiting = asyncio.create_task(send("tools/call", asked, id=2))
        assert await asyncio.to_thread(model.entered.wait, 30)
        cancelled = await send("notifications/cancelled", {"requestId": 2, "reason": "enough"})
        assert cancelled.status_code == 202
        assert await asyncio.to_thread(model.abandoned.wait, 30)
        model.released.set()
        waiting.cancel()


def state(fleet: Any, wanted: str) -> str | None:
    """What `first` complains of once its status is `wanted`."""
    found = json.loads(fleet.get("first", "/healthz")[1])
    return str(found.get("message", "")) if found["status"] == wanted else None


async def test_a_sub_agent_that_hangs_degrades_and_comes_back(fleet: Any, era: str, toolkit: Any) -> None:
    """Stopped, its kernel still takes connections and nobody answers."""
    await asyncio.to_thread(toolkit.until, lambda: state(fleet, "ok") is not None or None)
    assert await ask(fleet, era, "to third hello") == ("got hello", False)
    process = fleet.running["third"].pid
    os.kill(process, signal.SIGSTOP)
    try:
        assert await asyncio.to_thread(toolkit.until, lambda: state(fleet, "degraded")) == "Unreachable: third"
        started = time.monotonic()
        assert await ask(fleet, era, "hello") == ("hello", False)
        assert await ask(fleet, era, "to second hello") == ("got hello", False)
        assert time.monotonic() - started < 20
        answer = await ask(fleet, era, "to third hello", META_SECONDS="2")
        assert answer == ("no answer before the task's deadline: x/first", True)
    finally:
        os.kill(process, signal.SIGCONT)
    await asyncio.to_thread(toolkit.until, lambda: state(fleet, "ok") is not None or None)
    assert await ask(fleet, era, "to third hello") == ("got hello", False)


async def test_a_sub_agent_killed_in_mid_call_is_named(fleet: Any, era: str, model: Any, toolkit: Any) -> None:
    model.entered.clear()
    model.released.clear()
    waiting = asyncio.create_task(ask(fleet, era, "to third slow"))
    assert await asyncio.to_thread(model.entered.wait, 30)
    started = time.monotonic()
    fleet.kill("third")
    model.released.set()
    text, _ = await waiting
    seconds = time.monotonic() - started
    (told,) = [toolkit.said(message) for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert "third" in told  # the tool error that `first`, its caller, got
    fleet.start("third")
    await asyncio.to_thread(fleet.wait, "third")
    assert text.startswith("got ")
    assert "third" in text
    assert seconds < 20
    assert await ask(fleet, era, "to third hello") == ("got hello", False)
