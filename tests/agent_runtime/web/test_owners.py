"""Whose a request is; how bodies and sessions are counted by it is in test_body_limits.py and test_session_room.py."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from pallas_agent_runtime.web.owners import owner


@pytest.mark.parametrize(
    ("client", "address"), [({"client": ("10.0.0.1", 4711)}, "10.0.0.1"), ({"client": None}, ""), ({}, "")]
)
def test_who_has_no_token_is_an_address_and_who_has_one_is_the_same_everywhere(client: Any, address: str) -> None:
    scope = {"type": "http", "headers": [], **client}
    assert owner(scope) == address
    alice, bob = (AuthenticatedUser(AccessToken(token="t", client_id=name, scopes=[])) for name in ("alice", "bob"))
    assert owner({**scope, "user": alice}) == owner({"type": "http", "headers": [], "user": alice})
    assert owner({**scope, "user": alice}) != owner({**scope, "user": bob})
