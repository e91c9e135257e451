"""Harper and its colleagues, started and asked: `pip install 'pallas-kit[local,testing]'`, then `pytest`."""

import pytest

QUESTION = "Who looks after the repositories?"
PATIENCE = 240
"""Seconds for what takes a few on a machine that has nothing else to do."""


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
def test_harper_delegates_and_quotes_what_its_colleagues_found(fleet, era):
    answer = fleet.agent("harper").ask(QUESTION, era=era)
    assert answer.delegated("harper -> research -> argos/search_web")
    assert answer.delegated("harper -> research -> neo4j_cypher/read_graph")
    assert answer.delegated("harper -> research -> tech_research")
    assert answer.delegated("harper -> engineering -> kernos/run")
    assert answer.delegated("harper -> engineering -> gitea/list_repos")
    for colleague in ("Research", "Tech Research", "Engineering"):
        assert f"{colleague}, asking from " in answer.text
    assert answer.progressed("harper step 1 (llm)", "research/*: started", "research/*: completed")
    values = [line.progress for line in answer.progress]
    assert values == sorted(values)


def test_a_colleague_that_hangs_is_shown_and_taken_back(fleet):
    fleet.faults.pause("tech_research")
    assert fleet.registry.saw("tech_research", "ok", "error", within=PATIENCE)
    fleet.wait_for({"research": "degraded", "engineering": "ok"}, within=PATIENCE)
    assert "tech_research" in fleet.registry.state("research").message
    fleet.faults.resume("tech_research")
    fleet.wait_for(dict.fromkeys(fleet.agents, "ok"), within=PATIENCE)
    fleet.wait_for(lambda: "Tech Research, asking from " in fleet.agent("harper").ask(QUESTION).text)


def test_nothing_is_left_when_all_is_answered(fleet):
    assert fleet.no_sessions_left()
