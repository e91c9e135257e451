"""What is refused in front of the transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_agent_runtime.web.body_limits import Refusals
from pallas_service.http.bodies import AT_ONCE, SMALL

LIMIT = 1 << 20


def calling(app: ASGIApp, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """A client of `app` at this address."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://x")


async def test_large_bodies_share_a_budget_and_small_ones_need_none() -> None:
    entered, release = asyncio.Semaphore(0), asyncio.Event()

    async def transport(scope: Scope, receive: Receive, send: Send) -> None:
        entered.release()
        await release.wait()
        await PlainTextResponse("answered")(scope, receive, send)

    app = Refusals(transport, LIMIT)
    async with AsyncExitStack() as stack:
        http, *others = [
            await stack.enter_async_context(calling(app, f"10.0.0.{number}")) for number in range(AT_ONCE + 1)
        ]
        calls = [asyncio.create_task(other.post("/mcp", content=b"x" * LIMIT)) for other in others]
        calls.append(asyncio.create_task(http.post("/mcp", content=b"x" * SMALL)))
        for _ in calls:
            await entered.acquire()
        refused = await http.post("/mcp", content=b"x" * (SMALL + 1))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"]["message"] == "too many large requests at once"
        release.set()
        assert {reply.status_code for reply in await asyncio.gather(*calls)} == {200}
        assert (await http.post("/mcp", content=b"x" * LIMIT)).status_code == 200


@pytest.mark.parametrize("text", [b"{}", b'"a,b"'])
async def test_a_body_of_very_many_values_is_not_parsed(text: bytes) -> None:
    """Its values take a gigabyte where the body has 32 MiB; commas in a text are none."""
    app = Refusals(PlainTextResponse("parsed"), 8 * LIMIT)
    async with calling(app) as http:
        fits = await http.post("/mcp", content=b"[" + b",".join([text] * 40_000) + b"]")
        refused = await http.post("/mcp", content=b"[" + b",".join([text] * 100_001) + b"]")
    assert (fits.status_code, fits.text) == (200, "parsed")
    assert (refused.status_code, refused.json()["error"]) == (
        413,
        {"code": -32600, "message": "request body has more than 100000 values"},
    )


async def test_heads_alone_and_slow_bodies_take_nothing_from_others() -> None:
    """A chunked body says nothing of its size; what it may take is what has come of it."""
    ends = asyncio.Event()

    async def transport(scope: Scope, receive: Receive, send: Send) -> None:
        size = 0
        while (message := await receive()).get("more_body"):
            size += len(message["body"])
        await PlainTextResponse(str(size + len(message["body"])))(scope, receive, send)

    async def slow(first: bytes) -> AsyncIterator[bytes]:
        yield first
        await ends.wait()
        yield b"end"

    app = Refusals(transport, LIMIT)
    async with AsyncExitStack() as stack:
        http, *others = [
            await stack.enter_async_context(calling(app, f"10.0.0.{number}")) for number in range(AT_ONCE + 1)
        ]
        calls = [asyncio.create_task(http.post("/mcp", content=slow(b""))) for _ in range(4 * AT_ONCE)]
        large = [asyncio.create_task(other.post("/mcp", content=slow(b"x" * LIMIT))) for other in others]
        while app._budget.left > 0:
            await asyncio.sleep(0)
        assert (await http.post("/mcp", content=b"x" * SMALL)).text == str(SMALL)
        over = await http.post("/mcp", content=slow(b"x" * (SMALL + 1)))
        assert (over.status_code, over.headers["retry-after"]) == (503, "1")
        ends.set()
        assert {reply.text for reply in await asyncio.gather(*calls)} == {"3"}
        assert {reply.text for reply in await asyncio.gather(*large)} == {str(LIMIT + 3)}
    assert app._budget.left == AT_ONCE * LIMIT


@pytest.mark.parametrize("verified", [False, True])
async def test_one_caller_cannot_take_the_room_of_all_others(verified: bool) -> None:
    """A caller is who the token says, whatever the address, and an address where there is no token."""
    ends = asyncio.Event()

    async def transport(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await PlainTextResponse("read")(scope, receive, send)

    async def slow() -> AsyncIterator[bytes]:
        yield b"x" * LIMIT
        await ends.wait()

    refusals = Refusals(transport, LIMIT)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if verified:
            scope["user"] = AuthenticatedUser(AccessToken(token="t", client_id=scope["client"][0], scopes=[]))
            scope["client"] = ("10.0.0.1", 1)
        await refusals(scope, receive, send)

    async with asyncio.timeout(60), calling(app, "mallory") as mallory, calling(app, "alice") as alice:
        held = [asyncio.create_task(mallory.post("/mcp", content=slow())) for _ in range(AT_ONCE)]
        done, held_open = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
        while len(held_open) > AT_ONCE // 2:
            more, held_open = await asyncio.wait(held_open, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        assert {call.result().status_code for call in done} == {503}
        assert (await alice.post("/mcp", content=b"x" * LIMIT)).text == "read"
        assert (await mallory.post("/mcp", content=b"x" * (SMALL + 1))).status_code == 503
        assert (await mallory.post("/mcp", content=b"x" * SMALL)).text == "read"
        ends.set()
        assert {(await call).text for call in held_open} == {"read"}


async def test_who_hangs_up_gives_back_what_was_taken() -> None:
    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("there is no body")

    async def receive() -> Message:
        return parts.pop(0)

    async def send(message: Message) -> None:
        raise AssertionError(message)

    app = Refusals(nothing, LIMIT)
    parts: list[Message] = [
        {"type": "http.request", "body": b"x" * LIMIT, "more_body": True},
        {"type": "http.disconnect"},
    ]
    await app({"type": "http", "method": "POST", "headers": []}, receive, send)
    assert app._budget.left == AT_ONCE * LIMIT


@pytest.mark.parametrize("headers", [{"content-length": str(LIMIT * 100)}, {"transfer-encoding": "chunked"}])
async def test_a_body_that_says_too_much_or_nothing_is_for_the_transport_to_refuse(headers: dict[str, str]) -> None:
    async with calling(Refusals(PlainTextResponse("seen"), LIMIT)) as http:
        assert (await http.post("/mcp", content=b"x", headers=headers)).status_code == 200
