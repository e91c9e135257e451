"""The live model: facts in, changes out, each once and in order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state.agents import AgentStates, Replica
from pallas_registry.state.history import Change
from pallas_registry.state.status import Condition

A, B = Endpoint("http://harper:8080/mcp", "10.0.0.1"), Endpoint("http://harper:8080/mcp", "10.0.0.2")
OK, REFUSED = Result("ok"), Result("error", Reason("ConnectionRefused", "connection refused"))


@dataclass
class Heard:
    changes: list[Change] = field(default_factory=list)
    updates: int = 0

    def update(self) -> None:
        self.updates += 1


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def agent_states(time, heard: Heard) -> AgentStates:
    agent_states = AgentStates(clock=time.clock, now=time.now, on_change=heard.changes.append, on_update=heard.update)
    agent_states.expect(["harper", "research"])
    heard.updates = 0
    return agent_states


async def test_from_unknown_to_ok_to_error(agent_states: AgentStates, heard: Heard, time) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    assert (heard.changes, heard.updates) == ([], 1), "where it is, but not yet how"
    agent_states.add_result("harper", A, OK)
    await time.advance(5)
    agent_states.add_result("harper", A, REFUSED)
    first, second = heard.changes
    assert (first.agent, first.old, first.new, first.reason.message) == ("harper", "unknown", "ok", "")
    assert (second.old, second.new, second.reason.message) == ("ok", "error", "connection refused")
    assert second.at - first.at == timedelta(seconds=5)
    assert heard.updates == 3


def test_the_same_again_is_no_change(agent_states: AgentStates, heard: Heard) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    for _ in range(3):
        agent_states.add_result("harper", A, OK)
        agent_states.set_sighting("harper", Sighting((A,)))
    assert (len(heard.changes), heard.updates) == (1, 2)


def test_another_reason_is_an_update_but_no_change_of_state(agent_states: AgentStates, heard: Heard) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    agent_states.add_result("harper", A, REFUSED)
    agent_states.add_result("harper", A, Result("error", Reason("NoAnswer", "no answer in 3 s")))
    assert (len(heard.changes), heard.updates) == (1, 3)


def test_only_the_file_removes_an_agent(agent_states: AgentStates) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    agent_states.add_result("harper", A, REFUSED)
    agent_states.set_sighting("harper", Sighting(problem=Reason("NameNotFound", "name not found")))
    assert agent_states.agents == ("harper", "research")
    agent_states.expect(["research", "new"])
    assert agent_states.agents == ("research", "new")


def test_what_is_known_outlives_a_reload(agent_states: AgentStates, heard: Heard) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    agent_states.add_result("harper", A, OK)
    agent_states.expect(["new", "harper"])
    assert agent_states.condition("harper").state == "ok"
    assert len(heard.changes) == 1


def test_a_container_that_comes_back_elsewhere_keeps_its_state_until_it_answers(
    agent_states: AgentStates, heard: Heard
) -> None:
    for gone in (Sighting((A,)), Sighting(problem=Reason("NameNotFound", "name not found")), Sighting((B,))):
        agent_states.set_sighting("harper", gone)
    agent_states.add_result("harper", B, OK)
    assert [(change.old, change.new) for change in heard.changes] == [("unknown", "error"), ("error", "ok")]


def test_late_words_about_what_is_gone_are_ignored(agent_states: AgentStates) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    agent_states.add_result("harper", A, REFUSED)
    agent_states.set_sighting("harper", Sighting((B,)))
    agent_states.add_result("harper", A, OK)
    assert agent_states.condition("harper").state == "error"
    assert agent_states.age("harper") is None
    agent_states.expect(["research"])
    agent_states.add_result("harper", B, OK)
    agent_states.set_sighting("harper", Sighting((B,)))
    assert agent_states.agents == ("research",)


async def test_age_is_that_of_the_replica_probed_longest_ago(agent_states: AgentStates, time) -> None:
    assert agent_states.age("harper") is None
    agent_states.set_sighting("harper", Sighting((A, B)))
    agent_states.add_result("harper", A, OK)
    await time.advance(3)
    agent_states.add_result("harper", B, OK)
    await time.advance(1)
    assert agent_states.age("harper") == 4
    assert agent_states.endpoints("harper") == (A, B)


async def test_each_replica_with_what_it_said_and_when_it_was_last_well(agent_states: AgentStates, time) -> None:
    agent_states.set_sighting("harper", Sighting((A, B)))
    agent_states.add_result("harper", A, OK)
    first = time.now()
    await time.advance(5)
    agent_states.add_result("harper", A, REFUSED)
    assert agent_states.replicas("harper") == (Replica("10.0.0.1", REFUSED, time.now(), first), Replica("10.0.0.2"))
    assert (agent_states.result("harper", A), agent_states.result("harper", B)) == (REFUSED, None)
    assert agent_states.result("gone", A) is None


async def test_since_when_it_is_in_its_state(agent_states: AgentStates, time) -> None:
    agent_states.set_sighting("harper", Sighting((A,)))
    agent_states.add_result("harper", A, REFUSED)
    since = time.now()
    await time.advance(5)
    agent_states.add_result("harper", A, Result("error", Reason("SelfReported", "another reason")))
    assert agent_states.since("harper") == since
    agent_states.add_result("harper", A, OK)
    assert agent_states.since("harper") == time.now()


def test_waiting_are_those_nothing_is_known_about(agent_states: AgentStates) -> None:
    assert agent_states.waiting == ("harper", "research")
    agent_states.set_sighting("harper", Sighting(problem=Reason("NameNotFound", "name not found")))
    assert agent_states.waiting == ("research",)
    agent_states.set_sighting("research", Sighting(problem=Reason("NotProbed", "not probed: a command"), unsure=True))
    assert agent_states.waiting == ()


def test_10000_injected_changes_are_heard_complete_and_in_order(agent_states: AgentStates, heard: Heard) -> None:
    """An independent recorder: what the last probe said is what was last heard, and nothing else was."""
    dice = random.Random(5)
    agent_states.set_sighting("harper", Sighting((A,)))
    recorded, last = [], "unknown"
    for _ in range(10_000):
        state = dice.choice(["ok", "degraded", "error", "unauthenticated"])
        agent_states.add_result("harper", A, Result(state, Reason("SelfReported", "why")))
        if state != last:
            recorded.append((last, state))
        last = state
    assert [(change.old, change.new) for change in heard.changes] == recorded


@pytest.fixture
def starting(time, heard: Heard) -> AgentStates:
    """The same with 60 s to start."""
    agent_states = AgentStates(
        clock=time.clock, now=time.now, on_change=heard.changes.append, on_update=heard.update, start_period=60.0
    )
    agent_states.expect(["harper", "research"])
    return agent_states


async def test_an_agent_that_has_been_up_never_starts_again(starting: AgentStates, heard: Heard) -> None:
    starting.set_sighting("harper", Sighting((A,)))
    for result in (REFUSED, Result("degraded", Reason("SelfReported", "x")), REFUSED):
        starting.add_result("harper", A, result)
    assert [change.new for change in heard.changes] == ["starting", "degraded", "error"]
    assert starting.starting == ()


async def test_only_what_is_not_there_is_starting(starting: AgentStates) -> None:
    starting.set_sighting("harper", Sighting((A,)))
    starting.add_result("harper", A, Result("error", Reason("NotMcp", "HTML")))
    assert starting.condition("harper").state == "error"
    starting.set_sighting("research", Sighting(problem=Reason("NameNotFound", "name not found")))
    assert starting.condition("research") == Condition("starting", Reason("Starting", "not up yet: name not found"))
    assert starting.starting == ("research",)


async def test_the_time_to_start_counts_from_when_it_was_expected(starting: AgentStates, time) -> None:
    gone = Sighting(problem=Reason("NameNotFound", "name not found"))
    await time.advance(59)
    starting.expect(["harper", "research", "late"])
    for agent in ("harper", "late"):
        starting.set_sighting(agent, gone)
    await time.advance(1)
    for agent in ("harper", "late"):
        starting.set_sighting(agent, gone)
    assert starting.condition("harper").state == "error"
    assert starting.condition("late").state == "starting"


def test_a_refusal_counts_until_the_agent_answers_otherwise(starting: AgentStates) -> None:
    refusal = Reason("InputRefused", "agents.yaml: no")
    gone = Sighting(problem=Reason("NameNotFound", "name not found"))
    starting.set_sighting("harper", Sighting((A,)))
    for result in (Result("error", refusal), REFUSED):
        starting.add_result("harper", A, result)
        assert starting.condition("harper") == Condition("error", refusal)
    starting.set_sighting("harper", gone)
    assert starting.condition("harper") == Condition("error", refusal)
    starting.set_sighting("harper", Sighting((A,)))
    starting.add_result("harper", A, OK)
    starting.set_sighting("harper", gone)
    assert starting.condition("harper") == Condition("error", gone.problem)
