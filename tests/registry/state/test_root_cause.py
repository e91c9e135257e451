"""Where trouble starts: blamed on proof only."""

from __future__ import annotations

import pytest

from pallas_contract.documents.reason import Reason, reported
from pallas_registry.state.root_cause import Root, concerns, roots
from pallas_registry.state.status import NOT_PROBED, Condition

DEPENDS = {
    "harper": ["tech_research", "engineering"],
    "tech_research": ["archive", "neo4j"],
    "engineering": ["archive"],
}
OK = Condition("ok")


def found(agent: str, **conditions: Condition) -> list[tuple[str, str]]:
    all_of_them = dict.fromkeys(("harper", "tech_research", "engineering", "archive"), OK) | conditions
    return [(root.agent, root.reason.message) for root in roots(agent, DEPENDS, all_of_them)]


def says(message: str) -> Condition:
    """The state of an agent that says so of itself."""
    return Condition("degraded", reported(message, well=False))


def test_the_well_have_none() -> None:
    assert found("harper") == []
    assert found("harper", harper=NOT_PROBED) == []


def test_along_the_chain_to_who_names_nobody_in_trouble() -> None:
    assert found(
        "harper",
        harper=says("Unreachable: tech-research"),
        tech_research=says("Unreachable: neo4j"),
    ) == [("tech_research", "Unreachable: neo4j")]


def test_one_that_starts_is_to_blame_for_who_needs_it_and_no_trouble_by_itself() -> None:
    starting = Condition("starting", Reason("Starting", "not up yet: connection refused"))
    assert found("archive", archive=starting) == []
    assert found("engineering", engineering=says("Unreachable: archive"), archive=starting) == [
        ("archive", "not up yet: connection refused")
    ]


def test_two_ways_to_one_cause_are_one() -> None:
    assert found(
        "harper",
        harper=says("Unreachable: tech_research, engineering"),
        tech_research=says("Unreachable: archive"),
        engineering=says("Unreachable: archive"),
        archive=Condition("error", Reason("ConnectionRefused", "connection refused")),
    ) == [("archive", "connection refused")]


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        (
            "slow",
            Condition("error", Reason("ConnectionRefused", "refused")),
        ),  # both are unwell, and that proves nothing
        ("Unreachable: tech_research", OK),  # it names one that is well
        ("Unreachable: tech_research", NOT_PROBED),
    ],
)
def test_without_proof_the_agent_itself(reason: str, other: Condition) -> None:
    assert found("harper", harper=says(reason), tech_research=other) == [("harper", reason)]


def test_a_cause_without_words_has_its_state() -> None:
    assert roots("a", {}, {"a": Condition("error")}) == (Root("a", Reason("Ok", "error")),)


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (Reason("ConnectionRefused", "connection refused"), "connection"),
        (Reason("ReplicasDiffer", "replicas differ in tools: a missing on 10.0.0.2", ("10.0.0.2",)), "tools"),
        (Reason("ProviderDown", "LLM: openai: no API key"), "llm"),
        (Reason("ProviderDown", "LLM: openai: no API key"), "openai"),
        (Reason("NameNotFound", "name not found"), "name"),
        (Reason("NameMismatch", "answers as research"), "research"),
    ],
)
def test_nobody_is_blamed_for_a_word_in_a_message(reason: Reason, name: str) -> None:
    conditions = {"harper": Condition("error", reason), name: says("Unreachable: neo4j")}
    assert roots("harper", {"harper": [name], name: []}, conditions) == (Root("harper", reason),)


@pytest.mark.parametrize("name", ["connection", "tools", "llm", "name"])
def test_whoever_is_on_the_list_is_blamed_whatever_its_name(name: str) -> None:
    refused = Reason("ConnectionRefused", "connection refused")
    conditions = {"harper": says(f"Unreachable: {name}"), name: Condition("error", refused)}
    assert roots("harper", {"harper": [name], name: []}, conditions) == (Root(name, refused),)


@pytest.mark.parametrize(("named", "other"), [("tech-research", True), ("tech_research", True), ("research", False)])
def test_a_name_is_known_as_host_name_too(named: str, other: bool) -> None:
    assert concerns(Reason("Unreachable", about=(named,)), "tech_research") is other


def test_a_circle_of_soft_edges_ends() -> None:
    depends = {"a": ["b"], "b": ["a", "c"], "c": []}
    circle = {"a": says("Unreachable: b"), "b": says("Unreachable: a"), "c": says("Unreachable: x")}
    assert roots("a", depends, circle) == (Root("a", circle["a"].reason),), "nobody else is to blame"
    out = circle | {"b": says("Unreachable: a, c")}
    assert roots("a", depends, out) == roots("b", depends, out) == (Root("c", circle["c"].reason),)


def test_a_fleet_where_everybody_blames_everybody_below_is_looked_at_once_each() -> None:
    """As many ways as there are here, 20 to the power of 12, would never end."""
    levels = [[f"a{level}_{number}" for number in range(20)] for level in range(13)]
    depends = {name: below for level, below in zip(levels, [*levels[1:], []], strict=True) for name in level}
    conditions = {name: says(f"Unreachable: {', '.join(below) or 'x'}") for name, below in depends.items()}
    assert {root.agent for root in roots("a0_0", depends, conditions)} == set(levels[-1])
