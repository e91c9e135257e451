"""What several replicas' answers come to."""

from __future__ import annotations

import pytest

from pallas_contract.probe.probe import LEGACY, MODERN, Result
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state.status import Verdict, judge

A, B, C = (Endpoint("http://tech-research:8080/mcp", f"10.0.0.{number}") for number in (1, 2, 3))
OK = Result("ok", era=MODERN, name="tech-research", version="1.0")
REFUSED = Result("error", "connection refused")
HUNG = Result("error", "no answer in 3 s")
CLOSED = Result("unauthenticated", "reachable, needs credentials (HTTP 401)")


def of(**more) -> Result:
    return Result(**{"state": "ok", "era": MODERN, "name": "tech-research", "version": "1.0", **more})


def judged(*results: Result, problem: str = "") -> Verdict | None:
    endpoints = (A, B, C)[: len(results)]
    return judge("tech_research", Sighting(endpoints, problem), dict(zip(endpoints, results, strict=True)))


CASES = {
    "one tool missing": (
        [of(tools={"a": "1", "b": "1"}), of(tools={"a": "1"})],
        Verdict("degraded", "replicas differ in tools: b missing on 10.0.0.2"),
    ),
    "one tool changed": (
        [of(tools={"a": "1"}), of(tools={"a": "2"})],
        Verdict("degraded", "replicas differ in tools: a takes other arguments"),
    ),
    "many tools missing": (
        [of(tools=dict.fromkeys("abcde", "1")), of(tools={})],
        Verdict(
            "degraded",
            "replicas differ in tools: a missing on 10.0.0.2; b missing on 10.0.0.2; c missing on 10.0.0.2 and 2 more",
        ),
    ),
    "tools not known everywhere": ([of(tools={"a": "1"}), of()], Verdict("ok")),
    "the same tools": ([of(tools={"a": "1"}), of(tools={"a": "1"})], Verdict("ok")),
    "one ok": ([OK], Verdict("ok")),
    "one ok with a remark": (
        [of(reason="reachable; no get_health tool")],
        Verdict("ok", "reachable; no get_health tool"),
    ),
    "one error": ([REFUSED], Verdict("error", "connection refused")),
    "one degraded": ([of(state="degraded", reason="slow")], Verdict("degraded", "slow")),
    "one closed": ([CLOSED], Verdict("unauthenticated", CLOSED.reason)),
    "all ok": ([OK, OK], Verdict("ok")),
    "one of two bad": ([OK, REFUSED], Verdict("degraded", "1 of 2 replicas: 10.0.0.2: connection refused")),
    "two of three bad": (
        [REFUSED, OK, HUNG],
        Verdict("degraded", "2 of 3 replicas: 10.0.0.1: connection refused; 10.0.0.3: no answer in 3 s"),
    ),
    "all bad alike": ([REFUSED, REFUSED], Verdict("error", "connection refused")),
    "all bad each its way": (
        [REFUSED, HUNG],
        Verdict("error", "10.0.0.1: connection refused; 10.0.0.2: no answer in 3 s"),
    ),
    "one closed of two": ([OK, CLOSED], Verdict("degraded", f"1 of 2 replicas: 10.0.0.2: {CLOSED.reason}")),
    "bad and closed": (
        [REFUSED, CLOSED],
        Verdict(
            "degraded",
            f"1 of 2 replicas: 10.0.0.1: connection refused; 1 of 2 replicas: 10.0.0.2: {CLOSED.reason}",
        ),
    ),
    "one degraded of two": ([OK, of(state="degraded", reason="slow")], Verdict("degraded", "10.0.0.2: slow")),
    "degraded without a reason": ([of(state="degraded")], Verdict("degraded")),
    "versions differ": (
        [OK, of(version="1.1"), OK],
        Verdict("degraded", "replicas differ in version: 1.0 (10.0.0.1, 10.0.0.3), 1.1 (10.0.0.2)"),
    ),
    "eras differ": (
        [OK, of(era=LEGACY)],
        Verdict("degraded", f"replicas differ in era: {LEGACY} (10.0.0.2), {MODERN} (10.0.0.1)"),
    ),
    "one says no version": ([OK, of(version="")], Verdict("ok")),
    "another's name": ([of(name="engineering")], Verdict("degraded", "answers as engineering")),
    "its name as in the file": ([of(name="tech_research")], Verdict("ok")),
    "no name": ([of(name="")], Verdict("ok")),
    "another's name and ill": (
        [of(state="error", reason="no model", name="engineering")],
        Verdict("error", "no model"),
    ),
}


@pytest.mark.parametrize(("results", "verdict"), CASES.values(), ids=CASES)
def test_verdict(results: list[Result], verdict: Verdict) -> None:
    assert judged(*results) == verdict


def test_addresses_that_may_be_old_are_marked() -> None:
    assert judged(OK, problem="old addresses") == Verdict("ok", "old addresses")
    assert judged(REFUSED, problem="old addresses") == Verdict("error", "connection refused; old addresses")


def test_a_name_that_is_gone_is_an_error_a_resolver_that_fails_is_not() -> None:
    assert judge("a", Sighting(problem="name not found"), {}) == Verdict("error", "name not found")
    assert judge("a", Sighting(problem="no DNS", unsure=True), {}) == Verdict("unknown", "no DNS")


def test_an_address_that_was_not_probed_says_nothing() -> None:
    assert judge("a", Sighting((A,)), {}) is None


def test_a_replica_that_was_not_probed_yet_does_not_count() -> None:
    assert judge("tech_research", Sighting((A, B)), {A: OK}) == Verdict("ok")
