"""The caller that what a request takes is counted for."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.types import Scope

from pallas_service.access.caller import caller


def owner(scope: Scope) -> str:
    """Return who the token says, or an address where nobody is asked for a token; empty where that is unknown."""
    verified = caller(HTTPConnection(scope))
    return verified.identity if verified else (scope.get("client") or ("",))[0]
