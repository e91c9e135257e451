"""Static tokens and JWTs: whose they are, and when they are nobody's."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import jwt
import pytest
from structlog.testing import capture_logs

from pallas_service.access.jwks import Keys
from pallas_service.access.static_tokens import StaticTokens
from pallas_service.access.verifier import LEEWAY, Trust, Verifier

MINE = "https://agents.example/research"
UI, OPS = "ui-0123456789abcdef", "ops-0123456789abcdef"


def verifier(issuer: Any, clock: Any = time.time, algorithms: tuple[str, ...] = ("ES256",)) -> Verifier:
    async def fetch() -> bytes:
        return json.dumps(issuer.jwks()).encode()

    trust = Trust(issuer.url, MINE, algorithms, Keys(fetch))
    return Verifier(StaticTokens({"ui": UI, "ops": OPS}), trust, ("call",), clock)


async def test_a_static_token_is_its_caller_with_every_scope(issuer: Any) -> None:
    found = await verifier(issuer).verify_token(OPS)
    assert found is not None
    assert (found.client_id, found.scopes, found.subject) == ("ops", ["call"], None)


async def test_a_jwt_tells_subject_client_audiences_and_scopes(issuer: Any) -> None:
    token = issuer.token([MINE, "other"], "alice", client_id="web", scope="call list")
    found = await verifier(issuer).verify_token(token)
    assert found is not None
    assert (found.client_id, found.subject, found.scopes) == ("web", "alice", ["call", "list"])
    assert found.claims == {"iss": issuer.url, "aud": [MINE, "other"]}


@pytest.mark.parametrize(("client", "seen"), [({"azp": "web"}, "web"), ({}, "alice")])
async def test_the_client_is_the_subject_where_no_other_is_named(issuer: Any, client: dict, seen: str) -> None:
    found = await verifier(issuer).verify_token(issuer.token(MINE, "alice", scp=["call"], **client))
    assert found is not None
    assert (found.client_id, found.scopes) == (seen, ["call"])


@pytest.mark.parametrize(
    ("late", "accepted"), [(60 + LEEWAY - 1, True), (60 + LEEWAY + 1, False), (-LEEWAY + 2, True), (-LEEWAY - 2, False)]
)
async def test_time_is_that_of_the_clock_given(issuer: Any, late: float, accepted: bool) -> None:
    now = time.time()
    token = issuer.token(MINE, nbf=int(now))
    found = await verifier(issuer, clock=lambda: now + late).verify_token(token)
    assert (found is not None) is accepted


@pytest.mark.parametrize("times", [{"exp": "tomorrow"}, {"nbf": "yesterday"}, {"nbf": [1]}])
async def test_a_time_that_is_no_number_is_refused(issuer: Any, times: Mapping[str, Any]) -> None:
    assert await verifier(issuer).verify_token(issuer.token(MINE, **times)) is None


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("claim", ["exp", "nbf"])
async def test_a_time_that_never_comes_is_refused(issuer: Any, claim: str, moment: float) -> None:
    assert await verifier(issuer).verify_token(issuer.token(MINE, **{claim: moment})) is None


async def test_nobody_is_no_caller(issuer: Any) -> None:
    assert await verifier(issuer).verify_token(issuer.token(MINE, "")) is None


@pytest.mark.parametrize("scope", [7, True, {"call": 1}, [7], [["call"]]])
@pytest.mark.parametrize("claim", ["scope", "scp"])
async def test_a_scope_that_is_no_text_is_refused(issuer: Any, claim: str, scope: object) -> None:
    assert await verifier(issuer).verify_token(issuer.token(MINE, **{claim: scope})) is None


async def test_a_scope_of_null_is_none(issuer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = {"iss": issuer.url, "aud": MINE, "sub": "alice", "exp": time.time() + 60, "scope": None}
    ((kid, key),) = issuer.keys.items()
    found = await verifier(issuer).verify_token(jwt.encode(claims, key, "ES256", {"kid": kid}))
    assert found is not None
    assert found.scopes == []


async def test_a_check_that_fails_by_itself_refuses(issuer: Any) -> None:
    def clock() -> float:
        raise ZeroDivisionError

    with capture_logs() as lines:
        assert await verifier(issuer, clock=clock).verify_token(issuer.token(MINE)) is None
    assert [line["reason"] for line in lines] == ["its check failed"]


async def test_only_listed_algorithms_are_accepted(issuer: Any) -> None:
    assert await verifier(issuer, algorithms=("RS256",)).verify_token(issuer.token(MINE)) is None


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "ü" * 20, "\ud800", f"{UI} ", "." * 1000])
async def test_anything_else_is_nobodys(issuer: Any, token: str) -> None:
    assert await verifier(issuer).verify_token(token) is None
