"""Limits by tenant, with a clock of the test's."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.tenants import WINDOW, Allowance, Exceeded, Tenants, is_counted
from pallas_service.access.caller import Caller


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def allowance(clock: Clock, **limits: Any) -> Allowance:
    return Allowance("acme", Tenant(callers=["phone"], **limits), clock)


def passed(used: Allowance, count: int) -> int:
    """Return how many of `count` requests pass, one after the other."""
    passes = 0
    for _ in range(count):
        try:
            with used.used():
                passes += 1
        except Exceeded:
            pass
    return passes


def test_a_tenant_has_the_limits_of_the_seed() -> None:
    tenant = Tenant()
    assert (tenant.per_minute, tenant.concurrent, tenant.timeout) == (100, 10, 60)


def test_exactly_as_many_requests_pass_in_any_minute() -> None:
    clock = Clock()
    used = allowance(clock)
    assert passed(used, 60) == 60
    clock.now += 30
    assert passed(used, 940) == 40
    clock.now += 30  # the first sixty are a minute ago, the others half of one
    assert passed(used, 1000) == 60
    clock.now += WINDOW
    assert passed(used, 1000) == 100


def test_who_is_refused_is_told_when_to_come_again() -> None:
    clock = Clock()
    used = allowance(clock, requests="1/minute")
    assert passed(used, 1) == 1
    clock.now += 20.5
    with pytest.raises(Exceeded, match="`acme` may make 1 requests a minute") as refused, used.used():
        pass
    assert (refused.value.reason, refused.value.retry_after) == ("rate", 40)
    clock.now += refused.value.retry_after
    assert passed(used, 1) == 1


def test_so_many_are_under_way_at_once_and_what_is_refused_is_not_counted() -> None:
    used = allowance(Clock(), concurrent=2, requests="3/minute")
    with ExitStack() as stack:
        stack.enter_context(used.used())
        stack.enter_context(used.used())
        for _ in range(5):
            with pytest.raises(Exceeded, match="has 2 requests under way") as refused, used.used():
                pass
            assert (refused.value.reason, refused.value.retry_after) == ("concurrency", 1)
    assert passed(used, 5) == 1


def test_a_tenant_is_found_by_who_was_verified_and_by_nothing_else() -> None:
    written = {"acme": Tenant(callers=["phone"], subjects=["anna"]), "other": Tenant(subjects=["phone"])}
    tenants = Tenants(written)

    def tenant(name: str, issuer: str | None = None) -> str | None:
        found = tenants.of(Caller(name, "", "", issuer))
        return found.name if found else None

    assert (tenant("phone"), tenant("anna", "https://id.example")) == ("acme", "acme")
    assert tenant("phone", "https://id.example") == "other"
    assert (tenant("anna"), tenant("nobody"), tenants.of(None)) == (None, None, None)
    assert tenants.of(Caller("phone", "", "")) is tenants.of(Caller("anna", "", "", "https://id.example"))


def test_lists_and_notifications_are_free() -> None:
    free = ("initialize", "tools/list", "notifications/cancelled", "ping", "")
    assert not any(map(is_counted, free))
    assert all(map(is_counted, ("tools/call", "resources/read", "prompts/get", "made/up")))
