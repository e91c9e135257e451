"""The sender of a graph after its request: the same caller, and no token."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request

from pallas_gateway.own.execution.durable import sender
from pallas_service.access.caller import caller

TRACE = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
HEADERS = [(b"traceparent", TRACE.encode()), (b"authorization", b"Bearer s3cret"), (b"pallas-caller", b"digest")]
STATIC = AccessToken(token="s3cret", client_id="phone", scopes=[])
SIGNED = AccessToken(
    token="s3cret", client_id="app", scopes=[], subject="anna", claims={"iss": "https://id", "aud": "x"}
)


@pytest.mark.parametrize("token", [STATIC, SIGNED, STATIC.model_copy(update={"client_id": "gateway"}), None])
async def test_it_is_the_same_caller(token: AccessToken | None) -> None:
    user = {"user": AuthenticatedUser(token)} if token else {}
    request = Request({"type": "http", "headers": HEADERS, **user})
    text = json.dumps(sender.of(request))
    assert "s3cret" not in text
    later = sender.request(json.loads(text))
    before, after = caller(request), caller(later)
    assert (before and (before.name, before.identity, before.issuer)) == (
        after and (after.name, after.identity, after.issuer)
    )
    assert (after is None) == (token is None)
    assert later.headers["traceparent"] == TRACE
    with pytest.raises(TimeoutError):  # its connection does not end
        await asyncio.wait_for(later.receive(), 0.05)
