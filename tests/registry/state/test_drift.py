"""What is not as agents.lock has it, in words and in the state."""

from __future__ import annotations

import pytest

from pallas_contract.documents import lock as locks
from pallas_contract.documents.lock import Lock, LockedImage, LockedMember, LockedTool
from pallas_contract.documents.reason import Reason
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.probe.probe import Result
from pallas_contract.validate import load
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state import drift
from pallas_registry.state.agents import AgentStates
from pallas_registry.state.drift import Expected
from pallas_registry.state.history import Change

TOOLS = {"harper": ToolContract("1", "2", "3")}
WELL = Result("ok", version="1.0", tools=TOOLS)
EXPECTED = Expected("1.0", TOOLS)
NO_TOOL = Reason("NoHealthTool", "reachable; no get_health tool")
SLOW = Reason("SelfReported", "slow")


def fleet(text: str = "port: 8101") -> ResolvedFleet:
    return load.parse(
        source.parse(
            f"name: x\nversion: 1.0.0\nagents:\n  harper: {{module: agents.harper, {text}}}\n", name="agents.yaml"
        )
    )


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (WELL, None),
        (WELL, EXPECTED),
        (Result("ok", version="", tools=None), EXPECTED),
        (Result("ok", version="9", tools={}), Expected()),
        (Result("error", SLOW, version="9"), EXPECTED),
        (Result("unauthenticated", SLOW, version="9"), EXPECTED),
    ],
    ids=["no lock", "the same", "not told", "nothing locked", "down", "closed"],
)
def test_what_is_as_expected_or_cannot_be_known_stays_as_it_is(result: Result, expected: Expected | None) -> None:
    assert drift.marked(result, expected) is result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (Result("ok", version="1.1"), "drift: version 1.1 is not 1.0"),
        (Result("ok", tools={}), "drift: tool harper is gone"),
        (Result("ok", tools=TOOLS | {"b": ToolContract("1")}), "drift: tool b is new"),
        (Result("ok", tools={"harper": ToolContract("x", "x", "x")}), "drift: tool harper takes other arguments"),
        (Result("ok", tools={"harper": ToolContract("1", "x", "x")}), "drift: tool harper gives other results"),
        (Result("ok", tools={"harper": ToolContract("1", "2", "x")}), "drift: tool harper has other annotations"),
        (
            Result("ok", tools=TOOLS | dict.fromkeys("abcde", ToolContract("1"))),
            "drift: tool a is new, tool b is new, tool c is new, and 2 more tools",
        ),
    ],
)
def test_each_difference_is_named(result: Result, message: str) -> None:
    marked = drift.marked(result, EXPECTED)
    assert (marked.state, marked.reason) == ("degraded", Reason("Drift", message))


def test_the_agents_own_trouble_comes_first_and_its_remark_last() -> None:
    changed = Result("degraded", SLOW, version="1.1")
    assert drift.marked(changed, EXPECTED).reason == Reason("SelfReported", "slow; drift: version 1.1 is not 1.0")
    remarked = Result("ok", NO_TOOL, version="1.1")
    assert drift.marked(remarked, EXPECTED).reason.code == "Drift"
    assert drift.marked(remarked, EXPECTED).reason.message.endswith("; reachable; no get_health tool")


def test_the_lock_says_what_is_expected() -> None:
    locked = LockedMember(
        image=LockedImage(name="i:1"),
        configuration=locks.configuration(fleet(), "harper"),
        tools={"harper": LockedTool(input="1", output="2")},
    )
    lock = Lock(name="x", version="1.0.0", agents={"harper": locked})
    assert drift.expected(None, fleet()) == {}
    assert drift.expected(lock, fleet()) == {"harper": Expected("1.0.0", {"harper": ToolContract("1", "2")})}
    edited = drift.expected(lock, fleet("port: 8102"))["harper"]
    assert edited.remark == "its entry in the fleet file is not the one of agents.lock"
    unlocked = drift.expected(Lock(name="x", version="1.0.0", agents={}), fleet())["harper"]
    assert unlocked == Expected(remark="agents.lock has no such agent")


def test_a_lock_that_comes_and_goes_changes_the_state_at_once(time) -> None:
    changes: list[Change] = []
    agent_states = AgentStates(clock=time.clock, now=time.now, on_change=changes.append, on_update=lambda: None)
    agent_states.expect(["harper"])
    endpoint = Endpoint("http://harper:8080/mcp", "10.0.0.1")
    agent_states.set_sighting("harper", Sighting((endpoint,)))
    agent_states.add_result("harper", endpoint, Result("ok", version="1.1", tools=TOOLS))
    agent_states.lock({"harper": EXPECTED})
    agent_states.lock({})
    assert [(change.new, change.reason.code) for change in changes] == [
        ("ok", "Ok"),
        ("degraded", "Drift"),
        ("ok", "Ok"),
    ]
