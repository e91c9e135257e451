"""Who may know of a member behind the gateway."""

from __future__ import annotations

from pallas_gateway.policy.route import Route
from pallas_service.access.caller import Caller


def test_an_issuer_makes_nobody_an_agent() -> None:
    route = Route("http://memory/mcp", callers=frozenset({"scout"}))
    assert route.admits(Caller("scout", "id", "token"))
    assert not route.admits(Caller("scout", "id", "token", issuer="https://id.example.com"))
    assert not route.admits(None)
