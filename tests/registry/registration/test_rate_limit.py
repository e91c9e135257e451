"""A burst at once, then evenly, for each key by itself."""

from __future__ import annotations

from pallas_registry.registration import rate_limit
from pallas_registry.registration.rate_limit import RateLimit


def test_a_burst_then_one_per_step() -> None:
    now = 100.0
    limit = RateLimit(rate=2.0, burst=3, clock=lambda: now)
    assert [limit.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    now += 0.5
    assert [limit.wait("a") for _ in range(2)] == [0.0, 0.5]
    assert limit.wait("b") == 0.0, "another key has a bucket of its own"


def test_a_rest_fills_the_bucket_and_no_more_than_that() -> None:
    now = 0.0
    limit = RateLimit(rate=1.0, burst=2, clock=lambda: now)
    limit.wait("a")
    limit.wait("a")
    now += 1000
    assert [limit.wait("a") for _ in range(3)] == [0.0, 0.0, 1.0]


def test_many_keys_are_forgotten_once_their_buckets_are_full() -> None:
    now = 0.0
    limit = RateLimit(rate=1.0, burst=1, clock=lambda: now)
    for number in range(rate_limit._KEYS):
        limit.wait(number)
    now += 1
    assert limit.wait("last") == 0.0
    assert list(limit._due) == ["last"]
