"""Where trouble starts: blamed on proof only."""

from __future__ import annotations

import pytest

from pallas_registry.state.root_cause import Root, mentions, roots
from pallas_registry.state.status import NOT_PROBED, Verdict

DEPENDS = {
    "harper": ["tech_research", "engineering"],
    "tech_research": ["archive", "neo4j"],
    "engineering": ["archive"],
}
OK = Verdict("ok")


def found(agent: str, **verdicts: Verdict) -> list[tuple[str, str]]:
    all_of_them = dict.fromkeys(("harper", "tech_research", "engineering", "archive"), OK) | verdicts
    return [(root.agent, root.reason) for root in roots(agent, DEPENDS, all_of_them)]


def test_the_well_have_none() -> None:
    assert found("harper") == []
    assert found("harper", harper=NOT_PROBED) == []


def test_along_the_chain_to_who_names_nobody_in_trouble() -> None:
    assert found(
        "harper",
        harper=Verdict("degraded", "Unreachable: tech-research"),
        tech_research=Verdict("degraded", "Unreachable: neo4j"),
    ) == [("tech_research", "Unreachable: neo4j")]


def test_two_ways_to_one_cause_are_one() -> None:
    assert found(
        "harper",
        harper=Verdict("degraded", "Unreachable: tech_research, engineering"),
        tech_research=Verdict("degraded", "archive is down"),
        engineering=Verdict("degraded", "archive is down"),
        archive=Verdict("error", "connection refused"),
    ) == [("archive", "connection refused")]


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        ("slow", Verdict("error", "refused")),  # both are unwell, and that proves nothing
        ("Unreachable: tech_research", OK),  # it names one that is well
        ("Unreachable: tech_research", NOT_PROBED),
    ],
)
def test_without_proof_the_agent_itself(reason: str, other: Verdict) -> None:
    assert found("harper", harper=Verdict("degraded", reason), tech_research=other) == [("harper", reason)]


def test_a_cause_without_words_has_its_state() -> None:
    assert roots("a", {}, {"a": Verdict("error")}) == (Root("a", "error"),)


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("research: down", True),
        ("(research)", True),
        ("tech-research: down", False),
        ("researcher", False),
        ("pre_research", False),
        ("Research", False),
    ],
)
def test_names_are_whole_words(reason: str, named: bool) -> None:
    assert mentions(reason, "research") is named


def test_a_name_is_known_as_host_name_too() -> None:
    assert mentions("tech-research: connection refused", "tech_research")
