"""What several replicas' answers come to."""

from __future__ import annotations

import pytest

from pallas_contract.documents.health import State
from pallas_contract.documents.reason import OK as WELL
from pallas_contract.documents.reason import Code, Reason
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe.probe import LEGACY, MODERN, Result
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state.status import Condition, judge

A, B, C = (Endpoint("http://tech-research:8080/mcp", f"10.0.0.{number}") for number in (1, 2, 3))
OK = Result("ok", era=MODERN, name="tech-research", version="1.0")
REFUSED = Result("error", Reason("ConnectionRefused", "connection refused"))
HUNG = Result("error", Reason("NoAnswer", "no answer in 3 s"))
CLOSED = Result("unauthenticated", Reason("Unauthorized", "reachable, needs credentials (HTTP 401)"))
SLOW = Reason("SelfReported", "slow")
NO_TOOL = Reason("NoHealthTool", "reachable; no get_health tool")


def of(**more) -> Result:
    return Result(**{"state": "ok", "era": MODERN, "name": "tech-research", "version": "1.0", **more})


def tools(names: str) -> dict[str, ToolContract]:
    return dict.fromkeys(names, ToolContract("1"))


def judged(*results: Result, problem: Reason = WELL) -> Condition | None:
    endpoints = (A, B, C)[: len(results)]
    return judge("tech_research", Sighting(endpoints, problem), dict(zip(endpoints, results, strict=True)))


def degraded(code: Code, message: str, *about: str) -> Condition:
    return Condition("degraded", Reason(code, message, about))


CASES = {
    "one tool missing": (
        [of(tools=tools("ab")), of(tools=tools("a"))],
        degraded("ReplicasDiffer", "replicas differ in tools: b missing on 10.0.0.2", "10.0.0.2"),
    ),
    "one tool changed": (
        [of(tools=tools("a")), of(tools={"a": ToolContract("2")})],
        degraded("ReplicasDiffer", "replicas differ in tools: a takes other arguments", "10.0.0.1", "10.0.0.2"),
    ),
    "many tools missing": (
        [of(tools=tools("abcde")), of(tools={})],
        degraded(
            "ReplicasDiffer",
            "replicas differ in tools: a missing on 10.0.0.2; b missing on 10.0.0.2; c missing on 10.0.0.2 and 2 more",
            "10.0.0.2",
        ),
    ),
    "tools not known everywhere": ([of(tools=tools("a")), of()], Condition("ok")),
    "the same tools": ([of(tools=tools("a")), of(tools=tools("a"))], Condition("ok")),
    "one ok": ([OK], Condition("ok")),
    "one ok with a remark": ([of(reason=NO_TOOL)], Condition("ok", NO_TOOL)),
    "one error": ([REFUSED], Condition("error", REFUSED.reason)),
    "one degraded": ([of(state="degraded", reason=SLOW)], Condition("degraded", SLOW)),
    "one closed": ([CLOSED], Condition("unauthenticated", CLOSED.reason)),
    "all ok": ([OK, OK], Condition("ok")),
    "one of two bad": (
        [OK, REFUSED],
        degraded("ReplicaUnavailable", "1 of 2 replicas: 10.0.0.2: connection refused", "10.0.0.2"),
    ),
    "two of three bad": (
        [REFUSED, OK, HUNG],
        degraded(
            "ReplicaUnavailable",
            "2 of 3 replicas: 10.0.0.1: connection refused; 10.0.0.3: no answer in 3 s",
            "10.0.0.1",
            "10.0.0.3",
        ),
    ),
    "all bad alike": ([REFUSED, REFUSED], Condition("error", REFUSED.reason)),
    "all bad each its way": (
        [HUNG, REFUSED],
        Condition(
            "error",
            Reason(
                "ConnectionRefused",
                "10.0.0.2: connection refused; 10.0.0.1: no answer in 3 s",
                ("10.0.0.2", "10.0.0.1"),
            ),
        ),
    ),
    "one closed of two": (
        [OK, CLOSED],
        degraded("ReplicaUnavailable", f"1 of 2 replicas: 10.0.0.2: {CLOSED.reason.message}", "10.0.0.2"),
    ),
    "bad and closed": (
        [REFUSED, CLOSED],
        degraded(
            "ReplicaUnavailable",
            f"1 of 2 replicas: 10.0.0.1: connection refused; 1 of 2 replicas: 10.0.0.2: {CLOSED.reason.message}",
            "10.0.0.1",
            "10.0.0.2",
        ),
    ),
    "one degraded of two": (
        [OK, of(state="degraded", reason=SLOW)],
        degraded("SelfReported", "10.0.0.2: slow", "10.0.0.2"),
    ),
    "one of two without its server": (
        [OK, of(state="degraded", reason=Reason("Unreachable", "Unreachable: neo4j", ("neo4j",)))],
        degraded("Unreachable", "10.0.0.2: Unreachable: neo4j", "10.0.0.2", "neo4j"),
    ),
    "degraded without a reason": ([of(state="degraded")], Condition("degraded")),
    "versions differ": (
        [OK, of(version="1.1"), OK],
        degraded(
            "ReplicasDiffer",
            "replicas differ in version: 1.0 (10.0.0.1, 10.0.0.3), 1.1 (10.0.0.2)",
            "10.0.0.1",
            "10.0.0.3",
            "10.0.0.2",
        ),
    ),
    "eras differ": (
        [OK, of(era=LEGACY)],
        degraded(
            "ReplicasDiffer",
            f"replicas differ in era: {LEGACY} (10.0.0.2), {MODERN} (10.0.0.1)",
            "10.0.0.2",
            "10.0.0.1",
        ),
    ),
    "one says no version": ([OK, of(version="")], Condition("ok")),
    "another's name": ([of(name="engineering")], degraded("NameMismatch", "answers as engineering")),
    "its name as in the file": ([of(name="tech_research")], Condition("ok")),
    "no name": ([of(name="")], Condition("ok")),
    "another's name and ill": (
        [of(state="error", reason=SLOW, name="engineering")],
        Condition("error", SLOW),
    ),
}


@pytest.mark.parametrize(("results", "condition"), CASES.values(), ids=CASES)
def test_verdict(results: list[Result], condition: Condition) -> None:
    assert judged(*results) == condition


def test_addresses_that_may_be_old_are_marked() -> None:
    assert judged(OK, problem=Reason("NameUnresolved", "old addresses")) == Condition(
        "ok", Reason("NameUnresolved", "old addresses")
    )
    assert judged(REFUSED, problem=Reason("NameUnresolved", "old addresses")) == Condition(
        "error", Reason("ConnectionRefused", "connection refused; old addresses")
    )


def test_a_name_that_is_gone_is_an_error_a_resolver_that_fails_is_not() -> None:
    assert judge("a", Sighting(problem=Reason("NameNotFound", "name not found")), {}) == Condition(
        "error", Reason("NameNotFound", "name not found")
    )
    assert judge("a", Sighting(problem=Reason("NameUnresolved", "no DNS"), unsure=True), {}) == Condition(
        "unknown", Reason("NameUnresolved", "no DNS")
    )


def test_an_address_that_was_not_probed_says_nothing() -> None:
    assert judge("a", Sighting((A,)), {}) is None


def test_a_replica_that_was_not_probed_yet_does_not_count() -> None:
    assert judge("tech_research", Sighting((A, B)), {A: OK}) == Condition("ok")


@pytest.mark.parametrize(("code", "state"), [("Starting", "starting"), ("InputRefused", "error"), ("Exited", "error")])
def test_the_word_of_the_supervisor_counts_where_there_is_no_answer(code: Code, state: State) -> None:
    word = Reason(code, "its word")
    sighting = Sighting((A,), absence=word)
    assert judge("a", sighting, {}) == Condition(state, word)
    assert judge("a", sighting, {A: REFUSED}) == Condition(state, word)
    html = Result("error", Reason("NotMcp", "HTML"))
    for answer in (html, Result("degraded", Reason("SelfReported", "x")), Result("ok")):
        assert judge("a", sighting, {A: answer}) == Condition(answer.state, answer.reason)
