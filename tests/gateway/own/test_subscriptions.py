"""Changes of the agents of users, told to clients of the SDK that listen for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from pallas_gateway.data_plane.shares import Streams
from pallas_gateway.own.subscriptions import MOST_URIS
from pallas_service.http.bodies import SMALL
from tests.gateway.door import MODERN, PHONE, UI, Door
from tests.gateway.own.agents.test_user_agents import CREATE, MINE, TOKENS, URI, Workshop, ask, before, call

STRAY = "stray-0123456789ab"


class NotedStreams(Streams):
    """Shares that note in `ended` whose stream has ended, or was refused."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.ended: asyncio.Queue[str] = asyncio.Queue()

    @contextmanager
    def listening(self, owner: str) -> Iterator[None]:
        with ExitStack() as stack:
            stack.callback(self.ended.put_nowait, owner)  # the last thing, when the share is free again
            stack.enter_context(super().listening(owner))
            yield


@asynccontextmanager
async def client_of(door: Door, token: str = UI) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(timeout=60, headers={"authorization": f"Bearer {token}"}) as web:
        transport = streamable_http_client(f"{door.web.base_url}/mcp", http_client=web)
        async with Client(transport, mode=MODERN) as client:
            yield client


@asynccontextmanager
async def listening(door: Door, *uris: str, token: str = UI) -> AsyncIterator[AsyncIterator[Any]]:
    async with client_of(door, token) as client, client.listen(resource_subscriptions=uris) as stream:
        yield aiter(stream)


async def refusal(door: Door, *uris: str, token: str = UI) -> MCPError:
    async with client_of(door, token) as client:
        with pytest.raises(MCPError) as refused:
            async with client.listen(resource_subscriptions=uris):
                raise AssertionError
    return refused.value


async def create(door: Door, tenant: str, token: str, **changes: Any) -> None:
    created = await call(door, "create_agent", {**CREATE, "tenant_id": tenant, **changes}, token)
    assert created["result"]["structuredContent"]["status"] == "success"


async def next_uris(events: AsyncIterator[Any], count: int) -> Sequence[str]:
    updates = [await anext(events) for _ in range(count)]
    assert all(isinstance(update, ResourceUpdated) for update in updates)
    return [update.uri for update in updates]


async def test_who_listens_hears_of_new_agents_of_its_tenant_and_of_no_other() -> None:
    async with (
        before(Workshop(), TOKENS) as door,
        listening(door, MINE, URI) as ours,
        listening(door, MINE, URI, token=PHONE) as theirs,
        listening(door, "system-agents://list") as nothing,
    ):
        await create(door, "acme", UI)
        assert await next_uris(ours, 2) == [MINE, URI]
        await create(door, "home", PHONE, agent_name="other")
        assert await next_uris(theirs, 1) == [MINE]
        await create(door, "home", PHONE)
        assert await next_uris(theirs, 2) == [MINE, URI]
        door.subscriptions.close()
        assert [event async for event in nothing] == []
        assert [event async for event in ours] == []


async def test_what_was_not_made_is_not_told() -> None:
    async with before(Workshop(), TOKENS) as door, listening(door, MINE) as events:
        refused = await call(door, "create_agent", {**CREATE, "tenant_id": "acme", "agent_name": "fail"}, UI)
        assert refused["result"]["isError"] is True
        door.subscriptions.close()
        assert [event async for event in events] == []


async def test_a_stream_takes_the_share_of_its_tenant() -> None:
    streams = NotedStreams(1)
    async with before(Workshop(), TOKENS, streams=streams) as door:
        async with listening(door, MINE), listening(door, MINE, token=PHONE):
            refused = await refusal(door, MINE)
            assert (refused.code, refused.data) == (-32002, {"reason": "concurrency", "retry_after": 1})
            assert await streams.ended.get() == "tenant acme"
        # that a client has hung up is noticed a little later
        assert {await streams.ended.get(), await streams.ended.get()} == {"tenant acme", "tenant home"}
        async with listening(door, MINE) as events:
            door.subscriptions.close()
            assert [event async for event in events] == []


async def test_a_gateway_that_ends_begins_no_stream() -> None:
    async with before(Workshop(), TOKENS) as door:
        door.subscriptions.close()
        refused = await refusal(door, MINE)
        assert (refused.code, refused.data) == (-32603, {"reason": "busy", "retry_after": 1})


async def test_who_is_in_no_tenant_cannot_listen_nor_may_one_ask_for_too_much() -> None:
    async with before(Workshop(), {**TOKENS, "stray": STRAY}) as door:
        assert (await refusal(door, MINE, token=STRAY)).data == {"reason": "unknown_tenant"}
        many = await refusal(door, *[MINE] * (MOST_URIS + 1))
        assert (many.code, many.data["field"]) == (-32602, "notifications.resourceSubscriptions")
        assert (await refusal(door, "agentlet://" + "x" * SMALL)).data == {"reason": "too_large"}


async def test_the_handshake_era_has_no_stream_and_is_told_so() -> None:
    async with before(Workshop()) as door:
        assert (await ask(door, "resources/subscribe", {"uri": MINE}))["error"]["code"] == -32601
