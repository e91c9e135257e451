"""The events of the page of calls through the whole gateway: who sees what, and that a stream ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.confirmation.confirmations import Confirmations, Wanted
from pallas_gateway.data_plane.shares import Streams
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.database import Database
from pallas_gateway.tenants import Tenants
from pallas_gateway.watching import feed
from pallas_gateway.watching.board import Board
from pallas_gateway.watching.feed import Feed
from tests.gateway.confirmation.test_confirmations import WANTED
from tests.gateway.door import MODERN, PHONE, UI, Agent, Door, opened

UP = PlainTextResponse("{}", media_type="application/json")
FLEET = resolve(Fleet.model_validate({"name": "doors", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
TOKENS = {"ui": UI, "phone": PHONE, "desk": "desk-0123456789abcd", "ops": "ops-0123456789abcde"}
GATEWAY = Gateway.model_validate(
    {
        "agents": ["scout", "oracle"],
        "tenants": {"acme": {"callers": ["phone", "ui"]}, "home": {"callers": ["desk"]}},
        "grants": [
            {"caller": "phone", "agent": "scout", "tools": ["*"]},
            {"caller": "phone", "agent": "oracle", "tools": ["*"]},
            {"caller": "ui", "agent": "scout", "tools": ["*"]},
            {"caller": "desk", "agent": "scout", "tools": ["*"]},
        ],
        "confirm": [{"agent": "scout", "tools": ["wipe"], "by": ["desk"]}],
        "operators": ["ops"],
    }
)


def bearer(caller: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[caller]}"}


async def listening(door: Door, caller: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the events that a caller is sent."""
    kind = ""
    async with door.web.stream("GET", feed.PATH, headers=bearer(caller)) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield kind, json.loads(line.removeprefix("data: "))


async def first(door: Door, caller: str) -> dict[str, dict[str, Any]]:
    """Return what a caller is shown at once: one event of each kind."""
    seen: dict[str, dict[str, Any]] = {}
    async with asyncio.timeout(120), aclosing(listening(door, caller)) as events:
        async for kind, data in events:
            seen[kind] = data
            if len(seen) == 2:
                break
    return seen


async def call(door: Door, caller: str, agent: str, tool: str, **arguments: object) -> str:
    """Return the reason why a call was refused."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {**bearer(caller), "accept": "application/json, text/event-stream"}
    answer = (await door.web.post(f"/agents/{agent}/mcp", json=message, headers=headers)).json()
    return str(answer["error"]["data"]["reason"])


@asynccontextmanager
async def guarded(folder: Path, scout: Any = UP, wanted: Wanted | None = None) -> AsyncIterator[Door]:
    with closing(Database(folder / "gateway.db")) as database:
        store = Confirmations(database)
        if wanted:
            await store.redeem(wanted)
        async with opened(
            {"scout": scout, "oracle": UP},
            tokens=TOKENS,
            fleet=FLEET,
            tenants=Tenants(GATEWAY.tenants),
            policy=Policy(GATEWAY, ["scout", "oracle"]),
            store=store,
        ) as door:
            door.web.timeout = 120
            yield door


async def test_a_caller_sees_its_tenants_and_an_operator_all(tmp_path: Path) -> None:
    async with guarded(tmp_path) as door:
        assert await call(door, "phone", "scout", "wipe", id=1) == "confirmation_required"
        assert await call(door, "phone", "oracle", "a tool with spaces") == "not_granted"
        assert await call(door, "desk", "oracle", "echo") == "unknown_agent"
        seen = {name: (await first(door, name))["calls"]["refused"] for name in TOKENS}
        agents = {name: sorted(f"{entry['principal']} {entry['agent']}" for entry in seen[name]) for name in seen}
        assert agents == {
            "phone": ["phone oracle", "phone scout"],
            "ui": ["phone scout"],  # of the same tenant, which knows no oracle
            "desk": ["desk oracle"],  # what it called itself
            "ops": ["desk oracle", "phone oracle", "phone scout"],
        }
        assert (await door.web.get(feed.PATH)).status_code == 401
        foreign = {**bearer("ops"), "origin": "http://evil.example"}
        assert (await door.web.get(feed.PATH, headers=foreign)).status_code == 403
        assert (await door.web.post(feed.PATH, headers=bearer("ops"))).status_code == 405


async def test_no_name_hides_or_feigns_another(tmp_path: Path) -> None:
    async with guarded(
        tmp_path, wanted=replace(WANTED, tool="resources/read a\u202eb", by=frozenset({"desk"}))
    ) as door:
        (entry,) = (await first(door, "desk"))["confirmations"]["entries"]
        assert entry["tool"] == r"resources/read a\u202eb"


async def test_what_waits_is_for_who_may_confirm_it_digit_by_digit(tmp_path: Path) -> None:
    async with guarded(tmp_path) as door:
        await call(door, "phone", "scout", "wipe", id=12345678901234567890, text="\u202e")
        shown = {name: (await first(door, name))["confirmations"] for name in TOKENS}
        assert [name for name, data in shown.items() if data["may"]] == ["desk"]
        (entry,) = shown["desk"]["entries"]
        assert '"id": 12345678901234567890' in entry["text"]
        assert r'"text": "\u202e"' in entry["text"]
        assert "arguments" not in entry
        async with asyncio.timeout(120), aclosing(listening(door, "desk")) as events:
            decided = False
            async for kind, data in events:  # told of the decision, without asking
                if kind == "confirmations" and not decided:
                    decided = True
                    url = f"/confirmations/{entry['id']}"
                    reply = await door.web.post(url, json={"decision": "approve"}, headers=bearer("desk"))
                    assert reply.status_code == 200
                elif kind == "confirmations":
                    assert data == {"may": True, "entries": []}
                    break
        for name, who in (("desk", ["phone"]), ("phone", ["phone"]), ("ui", ["phone"]), ("ops", ["phone"])):
            confirmed = (await first(door, name))["calls"]["confirmed"]
            assert [entry["principal"] for entry in confirmed] == who
            assert [(entry["state"], entry["by"]) for entry in confirmed] == [("approved", "desk")]


async def test_a_call_is_seen_while_it_is_under_way(tmp_path: Path) -> None:
    agent = Agent()
    async with agent.app() as scout, guarded(tmp_path, scout) as door, AsyncExitStack() as stack:
        client = await stack.enter_async_context(door.client("scout", MODERN, PHONE))
        running = asyncio.create_task(client.call_tool("wait", {}))
        async with asyncio.timeout(120):
            await agent.waiting.wait()
        (entry,) = (await first(door, "ui"))["calls"]["calls"]
        assert (entry["agent"], entry["name"], entry["seconds"] >= 0) == ("scout", "wait", True)
        assert (await first(door, "desk"))["calls"]["calls"] == []
        running.cancel()
        async with asyncio.timeout(120), aclosing(listening(door, "ui")) as events:
            async for kind, data in events:
                if kind == "calls" and not data["calls"]:
                    break


async def test_a_stream_has_an_end_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "GET", "path": feed.PATH, "headers": [], "asgi": {"spec_version": "2.4"}}
    now = [0.0]
    board = Board(lambda: now[0])
    events = Feed(board, Policy.open(), Tenants(), Streams(1), pause=0)
    monkeypatch.setattr(feed, "LOOK", 0)
    now[0] = 0.0
    monkeypatch.setattr(feed, "LASTS", 0)  # a token may have expired: the page asks again
    async with asyncio.timeout(60):
        await events(scope, receive, send)
    monkeypatch.setattr(feed, "LASTS", 1e9)
    events.close()
    async with asyncio.timeout(60):
        await events(scope, receive, send)
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [200, 200]
