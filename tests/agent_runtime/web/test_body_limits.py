"""What is refused in front of the transport."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from pallas_agent_runtime.web.body_limits import AT_ONCE, SMALL, Refusals

LIMIT = 1 << 20


async def test_large_bodies_share_a_budget_and_small_ones_need_none() -> None:
    entered, release = asyncio.Semaphore(0), asyncio.Event()

    async def transport(scope: Scope, receive: Receive, send: Send) -> None:
        entered.release()
        await release.wait()
        await PlainTextResponse("answered")(scope, receive, send)

    app = Refusals(transport, LIMIT)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
        bodies = [b"x" * LIMIT] * AT_ONCE + [b"x" * SMALL]
        calls = [asyncio.create_task(http.post("/mcp", content=body)) for body in bodies]
        for _ in calls:
            await entered.acquire()
        refused = await http.post("/mcp", content=b"x" * (SMALL + 1))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"]["message"] == "too many large requests at once"
        release.set()
        assert {reply.status_code for reply in await asyncio.gather(*calls)} == {200}
        assert (await http.post("/mcp", content=b"x" * LIMIT)).status_code == 200


@pytest.mark.parametrize("headers", [{"content-length": str(LIMIT * 100)}, {"transfer-encoding": "chunked"}])
async def test_a_body_that_says_too_much_or_nothing_is_for_the_transport_to_refuse(headers: dict[str, str]) -> None:
    app = Refusals(PlainTextResponse("seen"), LIMIT)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
        assert (await http.post("/mcp", content=b"x", headers=headers)).status_code == 200
