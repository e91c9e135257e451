"""Progress lines as the tree of calls behind an answer, and what a test can demand of it."""

from __future__ import annotations

import pytest

from pallas_testing.answers.answer import Answer
from pallas_testing.answers.calls import Progress, tree

MAY_CALL = {"harper": ("research", "engineering"), "research": ("argos", "tech_research"), "engineering": ("kernos",)}
LINES = [
    "harper step 1 (llm)",
    "research/research__research: started",
    "engineering/engineering__engineering: started",
    "research step 1 (llm)",
    "argos/search_web: started",
    "tech_research/tech_research__tech_research: started",
    "argos/search_web: completed",
    "kernos/run: started",
    "kernos/run: failed",
    "engineering/engineering__engineering: completed",
    "tech_research/tech_research__tech_research: completed",
    "research/research__research: completed",
]
TREE = """\
harper (12.00 s)
  research (10.00 s)
    argos/search_web (2.00 s)
    tech_research (5.00 s)
  engineering (7.00 s)
    kernos/run (1.00 s, failed)"""


def answer(lines: list[str]) -> Answer:
    """Return an answer after progress with these lines, one a second."""
    progress = [Progress(float(at), at + 1.0, None, line) for at, line in enumerate(lines)]
    call = tree("harper", progress, MAY_CALL)
    call.seconds = float(len(lines))
    return Answer("All is well.", tuple(progress), call)


def test_calls_at_the_same_time_are_told_apart_by_who_may_call_whom() -> None:
    assert answer(LINES).tree == TREE


def test_a_server_that_the_file_does_not_name_belongs_to_the_agent_asked_last() -> None:
    lines = ["research/research__research: started", "wiki/look: started", "wiki/look: completed"]
    assert answer(lines).tree.splitlines()[1:] == ["  research (open)", "    wiki/look (1.00 s, or by harper)"]


ASKED = [
    "harper step 1 (llm)",
    "harper step 2 (tool)",
    "research/research__research: started",
    "engineering/engineering__engineering: started",
    "research step 1 (llm)",
]


def test_of_two_agents_at_work_a_function_is_of_the_one_that_calls_tools() -> None:
    more = ["engineering step 1 (llm)", "research step 2 (tool)", "local/count: started", "local/add: started"]
    (research, engineering) = answer([*ASKED, *more]).calls
    assert [(call.label, call.other_callers) for call in research.calls] == [("local/count", ()), ("local/add", ())]
    assert engineering.calls == []


def test_an_agent_that_has_said_nothing_yet_may_be_a_workflow_that_calls() -> None:
    silent = answer([*ASKED, "research step 2 (tool)", "local/count: started", "local/add: started"])
    for function in ("count", "add"):
        assert silent.delegated(f"harper -> research -> local/{function}")
        assert silent.delegated(f"harper -> engineering -> local/{function}")
    assert silent.tree.splitlines()[1:] == [
        "  research (open)",
        "    local/count (open, or by engineering)",
        "    local/add (open, or by engineering)",
        "  engineering (open)",
    ]
    with pytest.raises(AssertionError, match="harper was called, but not local/count by it"):
        silent.delegated("harper -> local/count")


def test_a_call_that_either_of_two_agents_may_have_made_counts_as_one_of_each() -> None:
    more = ["engineering step 1 (llm)", "research step 2 (tool)", "engineering step 2 (tool)"]
    both = answer([*ASKED, *more, "local/count: started", "local/add: started"])
    assert both.delegated("harper -> research -> local/add")
    assert both.delegated("harper -> engineering -> local/count")
    assert both.tree.splitlines()[1:] == [
        "  research (open)",
        "    local/count (open, or by engineering)",
        "  engineering (open)",
        "    local/add (open, or by research)",
    ]


def test_an_agent_whose_tools_are_done_has_none_to_call() -> None:
    more = ["local/count: started", "local/count: completed", "research step 3 (llm)", "engineering step 2 (tool)"]
    after = answer([*ASKED, "engineering step 1 (llm)", "research step 2 (tool)", *more, "local/add: started"])
    assert after.delegated("harper -> engineering -> local/add")
    with pytest.raises(AssertionError, match="not local/add by it"):
        after.delegated("harper -> research -> local/add")


def test_an_agent_may_call_its_own_function_beside_another_agent() -> None:
    after = answer([*ASKED[:3], "local/count: started", "research step 1 (llm)"])
    assert after.delegated("harper -> local/count")


def test_two_calls_of_one_tool_end_in_the_order_of_their_starts() -> None:
    lines = ["kernos/run: started", "kernos/run: started", "kernos/run: completed", "kernos/run: failed"]
    assert [(call.seconds, call.outcome) for call in answer(lines).calls] == [(2.0, "completed"), (2.0, "failed")]


def test_an_end_without_a_start_is_a_call_all_the_same() -> None:
    """Notifications are best effort: one may be lost."""
    assert [call.label for call in answer(["kernos/run: completed"]).calls] == ["kernos/run"]


@pytest.mark.parametrize(
    "path", ["harper -> research -> argos/search_web", "harper->engineering", "harper -> * -> tech-research"]
)
def test_a_delegation_that_was(path: str) -> None:
    assert answer(LINES).delegated(path)


def test_a_delegation_that_was_not_is_told_as_far_as_it_went() -> None:
    with pytest.raises(AssertionError) as failure:
        answer(LINES).delegated("harper -> research -> kernos/run")
    lines = str(failure.value).splitlines()
    assert lines[:2] == [
        "no delegation harper -> research -> kernos/run",
        "harper -> research was called, but not kernos/run by it. The calls were:",
    ]
    assert "\n".join(lines[2:]) == TREE


def test_progress_in_this_order() -> None:
    assert answer(LINES).progressed("harper step 1 (llm)", "research/*: started", "research/*: completed")


def test_nothing_but_the_asterisk_is_special() -> None:
    """Agents that are asked at the same time are numbered in brackets."""
    lines = ["agent/manager[1]: started", "agent/manager[1]: completed"]
    assert answer(lines).progressed("agent/manager[1]: started", "agent/*[1]: completed")
    with pytest.raises(AssertionError):
        answer(lines).progressed("agent/manage?[1]: started")


def test_progress_that_did_not_come_is_shown_at_its_place() -> None:
    with pytest.raises(AssertionError) as failure:
        answer(LINES[:3]).progressed("research/*: started", "harper step 1 (llm)")
    assert str(failure.value).splitlines()[1:] == [
        "  harper step 1 (llm)",
        "+ research/research__research: started",
        "  engineering/engineering__engineering: started",
        "- harper step 1 (llm)",
    ]
