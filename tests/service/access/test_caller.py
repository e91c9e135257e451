"""The identity of callers, those that came through the gateway among them."""

from __future__ import annotations

from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import HTTPConnection

from pallas_contract import names
from pallas_service.access.caller import Caller, caller


def verified(client: str, behind: str = "", **token: Any) -> Caller:
    headers = [(names.CALLER_HEADER.encode(), behind.encode())] if behind else []
    user = AuthenticatedUser(AccessToken(token="t", client_id=client, scopes=[], **token))
    sender = caller(HTTPConnection({"type": "http", "headers": headers, "user": user}))
    assert sender is not None
    return sender


def test_callers_behind_the_gateway_are_apart() -> None:
    ui, phone, itself = (verified("gateway", digest) for digest in ("a1", "b2", ""))
    assert len({ui.identity, phone.identity, itself.identity}) == 3
    assert verified("gateway", "a1").identity == ui.identity
    assert ui.name == "gateway"


def test_nobody_else_may_say_for_whom_it_calls() -> None:
    assert verified("ui", "a1").identity == verified("ui").identity
    issued = {"subject": "eve", "claims": {"iss": "https://issuer.example"}}
    assert verified("gateway", "a1", **issued).identity == verified("gateway", **issued).identity


def test_nobody_is_verified_where_no_token_is_asked_for() -> None:
    assert caller(None) is None
    assert caller(HTTPConnection({"type": "http", "headers": [(names.CALLER_HEADER.encode(), b"a1")]})) is None
