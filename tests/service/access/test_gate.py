"""The gate in front of `/mcp`: one token, from one header."""

from __future__ import annotations

import httpx
import pytest
from starlette.responses import PlainTextResponse

from pallas_service.access.gate import Gate
from pallas_service.access.static_tokens import StaticTokens
from pallas_service.access.verifier import Verifier

TOKEN = "ui-0123456789abcdef"
GATE = Gate(Verifier(StaticTokens({"ui": TOKEN})), "http://agents.example/mcp")


async def status(*authorization: str) -> tuple[int, str]:
    transport = httpx.ASGITransport(GATE.around(PlainTextResponse("in")))
    async with httpx.AsyncClient(transport=transport, base_url="http://agents.example") as client:
        reply = await client.post("/mcp", headers=[("authorization", value) for value in authorization])
    return reply.status_code, reply.headers.get("www-authenticate", "")


async def test_a_known_token_is_let_in_and_no_other() -> None:
    assert await status(f"Bearer {TOKEN}") == (200, "")
    assert (await status("Bearer made-up-0123456789"))[0] == 401
    assert (await status())[0] == 401


@pytest.mark.parametrize("other", [f"Bearer {TOKEN}", "Bearer made-up", "Basic dTpw", ""])
async def test_two_headers_are_refused_because_a_proxy_may_have_read_the_other(other: str) -> None:
    """RFC 6750, 3.1: `invalid_request`."""
    for headers in ((f"Bearer {TOKEN}", other), (other, f"Bearer {TOKEN}")):
        code, challenge = await status(*headers)
        assert code == 400
        assert challenge.endswith('error="invalid_request"')
