"""Approvers whose own client asks them (MCP, Elicitation): a user decides, and nothing that a model sends does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as t
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.responses import PlainTextResponse

from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.confirmation.confirmations import Asked, Confirmations, Wanted
from pallas_gateway.own.tools.decide import NAME
from pallas_gateway.policy.policy import Policy
from pallas_gateway.state.database import Database
from pallas_gateway.tenants import Tenants
from tests.gateway.door import ERAS, MODERN, PHONE, UI, Door, opened, text

UP = PlainTextResponse("{}", media_type="application/json")
FLEET = resolve(Fleet.model_validate({"name": "doors", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
GATEWAY = Gateway.model_validate(
    {
        "agents": ["scout"],
        "tenants": {"acme": {"callers": ["phone"]}},
        "confirm": [{"agent": "scout", "tools": ["wipe"], "by": ["ui"]}],
    }
)
WANTED = Wanted(
    caller='["phone"]',
    name="phone",
    tenant="acme",
    agent="scout",
    tool="wipe",
    asked=Asked({"id": 12345678901234567890, "text": "\u202e"}),
    policy="p",
    by=frozenset({"ui"}),
)


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[tuple[Door, Confirmations]]:
    with closing(Database(folder / "gateway.db")) as database:
        store = Confirmations(database)
        policy = Policy(GATEWAY, ["scout"])
        tokens = {"ui": UI, "phone": PHONE}
        tenants = Tenants(GATEWAY.tenants)
        async with opened(
            {"scout": UP}, tokens=tokens, fleet=FLEET, tenants=tenants, policy=policy, store=store
        ) as door:
            yield door, store


@asynccontextmanager
async def client(door: Door, token: str, era: str = MODERN, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=120) as web,
        Client(streamable_http_client(f"{door.web.base_url}/mcp", http_client=web), mode=era, **options) as made,
    ):
        yield made


class User:
    """A person in front of a client, who answers as `answer` says; `asked` is what was read."""

    def __init__(self, action: str, **content: str) -> None:
        self.answer = t.ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]
        self.asked: list[str] = []

    async def __call__(self, ctx: Any, params: t.ElicitRequestParams) -> t.ElicitResult:
        self.asked.append(params.message)
        return self.answer


@pytest.mark.parametrize(
    ("user", "told", "state"),
    [
        (User("accept", decision="approve"), "approved. 0 more wait.", "consumed"),
        (User("accept", decision="refuse"), "refused. 0 more wait.", "refused"),
        (User("accept", decision="whatever"), "not decided. 1 more wait.", "pending"),
        (User("decline"), "not decided. 1 more wait.", "pending"),
        (User("cancel"), "not decided. 1 more wait.", "pending"),
    ],
)
async def test_the_user_of_an_approver_decides(tmp_path: Path, user: User, told: str, state: str) -> None:
    async with guarded(tmp_path) as (door, store):
        await store.redeem(WANTED)
        async with client(door, UI, elicitation_callback=user) as approver:
            assert text(await approver.call_tool(NAME, {})) == told
        (question,) = user.asked
        assert question.startswith("phone of tenant acme asks for `wipe` of `scout`:")
        assert '"id": 12345678901234567890' in question
        assert r"\u202e" in question
        assert (await store.redeem(WANTED)).state == state


async def test_the_name_of_what_is_asked_for_is_no_question(tmp_path: Path) -> None:
    user = User("decline")
    async with guarded(tmp_path) as (door, store):
        await store.redeem(replace(WANTED, tool="resources/read a` of `desk`:\n{}\n"))
        async with client(door, UI, elicitation_callback=user) as approver:
            await approver.call_tool(NAME, {})
    assert user.asked[0].splitlines()[0].endswith(r"`resources/read a\u0060 of \u0060desk\u0060:\n{}\n` of `scout`:")


async def test_who_may_not_confirm_has_no_such_tool(tmp_path: Path) -> None:
    user = User("accept", decision="approve")
    async with guarded(tmp_path) as (door, store):
        await store.redeem(WANTED)
        async with client(door, PHONE, elicitation_callback=user) as caller:
            assert NAME not in [tool.name for tool in (await caller.list_tools()).tools]
            with pytest.raises(MCPError, match="Unknown tool"):
                await caller.call_tool(NAME, {})
        assert (user.asked, (await store.redeem(WANTED)).state) == ([], "pending")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_is_told_where_to_decide(tmp_path: Path, era: str) -> None:
    async with guarded(tmp_path) as (door, store), client(door, UI, era) as approver:
        assert text(await approver.call_tool(NAME, {})) == "Nothing waits."
        await store.redeem(WANTED)
        assert NAME in [tool.name for tool in (await approver.list_tools()).tools]
        # an argument is what a model writes, and decides nothing
        assert "cannot ask its user" in text(await approver.call_tool(NAME, {"decision": "approve"}))
        assert (await store.redeem(WANTED)).state == "pending"


async def test_what_is_too_long_to_be_read_there_is_decided_elsewhere(tmp_path: Path) -> None:
    user = User("accept", decision="approve")
    async with guarded(tmp_path) as (door, store):
        long = Wanted(
            **{key: getattr(WANTED, key) for key in WANTED.__slots__} | {"asked": Asked({"text": "x" * 5000})}
        )
        await store.redeem(long)
        async with client(door, UI, elicitation_callback=user) as approver:
            assert "too long to be asked here" in text(await approver.call_tool(NAME, {}))
        assert user.asked == []
