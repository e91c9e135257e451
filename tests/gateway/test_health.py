"""Health of the gateway from the ends of requests."""

from __future__ import annotations

import pytest

from pallas_gateway.data_plane.record import Call, Outcome, Record
from pallas_gateway.health import Reachability


def ended(agent: str, outcome: Outcome) -> Record:
    return Record(Call(agent, "", "ping"), outcome, 200, 0.1)


def test_an_agent_is_lost_until_it_answers_again() -> None:
    reachability = Reachability()
    for agent in ("scout", "oracle"):
        reachability.end(ended(agent, "unreachable"))
    reachability.end(ended("scout", "hung_up"))  # says nothing of the agent
    assert reachability.lost == {"oracle": "unreachable", "scout": "unreachable"}
    reachability.end(ended("scout", "answered"))
    assert reachability.current().message == "last calls failed: oracle"


@pytest.mark.parametrize("outcome", ["unreachable", "interrupted", "not_admitted"])
def test_every_failure_of_an_agent_counts(outcome: Outcome) -> None:
    reachability = Reachability()
    reachability.end(ended("scout", outcome))
    assert (reachability.lost, reachability.current().status) == ({"scout": outcome}, "degraded")


def test_an_end_may_tell_of_another_member_or_of_none() -> None:
    reachability = Reachability()
    call = Call("gateway", "", "agent.execute")
    for member, lost in ((None, []), ("", []), ("scout", ["scout"])):
        reachability.end(Record(call, "timeout", 200, 0.1, member))
        assert list(reachability.lost) == lost


def test_missing_keys_are_its_own_trouble() -> None:
    problem = ["keys of the issuer: HTTP 500"]
    reachability = Reachability(lambda: "".join(problem))
    assert (reachability.current().status, reachability.current().message) == ("degraded", problem[0])
    problem.clear()
    assert reachability.current().status == "ok"
