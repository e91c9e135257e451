"""What one caller or tenant may hold of what all have together, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.data_plane.shares import Streams
from pallas_gateway.tenants import Tenants
from pallas_service.http.bodies import AT_ONCE
from tests.gateway.door import LIMIT, PHONE, UI, Door, opened

LISTEN = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {}}


@asynccontextmanager
async def before(agent: Any, **options: Any) -> AsyncIterator[Door]:
    tenants = Tenants({"acme": Tenant(callers=["ui"])})
    tokens = {"ui": UI, "phone": PHONE}
    async with asyncio.timeout(60), opened({"scout": agent}, tokens=tokens, tenants=tenants, **options) as door:
        yield door


async def endless() -> AsyncIterator[bytes]:
    yield b": first\n\n"
    await asyncio.Event().wait()


async def endless_stream(scope: Scope, receive: Receive, send: Send) -> None:
    await StreamingResponse(endless(), media_type="text/event-stream")(scope, receive, send)


class Listeners:
    """Those who listen through a gateway, until `stack` ends."""

    def __init__(self, stack: AsyncExitStack, door: Door, method: str) -> None:
        self._stack = stack
        self._door = door
        self._method = method
        self._streams: list[AsyncIterator[bytes]] = []

    async def one_more(self, token: str) -> httpx.Response:
        """The answer to one more; of a stream the first event has come."""
        body = LISTEN if self._method == "POST" else None
        headers = {"authorization": f"Bearer {token}"}
        asked = self._door.web.stream(self._method, self._door.url(), json=body, headers=headers, timeout=60)
        response = await self._stack.enter_async_context(asked)
        if response.headers["content-type"].startswith("text/event-stream"):
            self._streams.append(response.aiter_raw())  # one that nobody holds closes its connection
            assert await anext(self._streams[-1]) == b": first\n\n"
        else:
            await response.aread()
        return response


@pytest.mark.parametrize(("method", "status"), [("GET", 429), ("POST", 200)])
async def test_a_listener_has_so_many_streams_and_others_go_on(method: str, status: int) -> None:
    async with before(endless_stream) as door:
        door.plane.streams = Streams(2)
        async with AsyncExitStack() as stack:
            listeners = Listeners(stack, door, method)
            assert [(await listeners.one_more(UI)).status_code for _ in range(2)] == [200, 200]
            refused = await listeners.one_more(UI)
            assert (refused.status_code, refused.headers["retry-after"]) == (status, "1")
            error = {"code": -32002, "data": {"reason": "concurrency", "retry_after": 1}}
            assert refused.json()["id"] == (7 if method == "POST" else None)
            assert error.items() <= refused.json()["error"].items()
            assert (await listeners.one_more(PHONE)).headers["content-type"].startswith("text/event-stream")
        await door.noted.until(4)
        async with AsyncExitStack() as stack:
            again = await Listeners(stack, door, method).one_more(UI)
            assert again.headers["content-type"].startswith("text/event-stream")


async def test_a_tenant_does_not_take_the_room_for_large_bodies_from_others() -> None:
    waiting = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        waiting.set()
        await asyncio.Event().wait()

    large = {**LISTEN, "method": "tools/call", "params": {"_meta": {"x": "a" * (LIMIT // 2)}}}

    async def ask(door: Door, token: str) -> httpx.Response:
        return await door.web.post(door.url(), json=large, headers={"authorization": f"Bearer {token}"})

    async with before(slow) as door:
        budget = door.plane.bodies
        async with budget.read(body_of(LIMIT), "tenant acme"):
            assert budget.left == (AT_ONCE - 2) * LIMIT
            refused = await ask(door, UI)
            assert (refused.status_code, refused.json()["error"]["data"]) == (503, {"reason": "busy"})
            task = asyncio.create_task(ask(door, PHONE))
            await waiting.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def body_of(size: int) -> Receive:
    """What gives a body of so many bytes."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * size}

    return receive


async def test_nobody_shares_where_nobody_is_asked_for_a_token() -> None:
    done: Response = PlainTextResponse("done")
    async with asyncio.timeout(60), opened({"scout": done}) as door:
        door.plane.streams = Streams(0)
        assert (await door.web.get(door.url())).text == "done"
