"""The script of examples/02-pallas: which of its agents says what, and calls whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pallas_testing.model import Message, Reply, Request, ScriptedModel, Tool, ToolCall

ASKED = Message("user", "what {results}?")
CALLED = Message("assistant", calls=(ToolCall("research__research", {}),))
ANSWERED = Message("tool", "line one\nline two", tool="research__research")


@pytest.fixture
def model(root: Path) -> ScriptedModel:
    return ScriptedModel(root / "examples" / "02-pallas" / "standins" / "model.yaml")


def reply(model: ScriptedModel, *messages: Message, instruction: str = "You are Harper, an orchestrator.") -> Any:
    tools = {"research__research": Tool("", {})}
    return model.answer(Request("chat", "scripted", instruction, messages, tools, caller="10.0.0.9")).result


def test_calls_the_tools_it_has_with_the_users_words(model: ScriptedModel) -> None:
    assert reply(model, ASKED) == Reply(calls=(ToolCall("research__research", {"message": "what {results}?"}),))


def test_quotes_the_results_of_this_turn_and_leaves_braces_alone(model: ScriptedModel) -> None:
    text = 'Harper asked around about "what {results}?".\n- research__research: line one\n  line two'
    assert reply(model, ASKED, CALLED, ANSWERED) == Reply(text)


def test_a_new_question_starts_a_new_turn(model: ScriptedModel) -> None:
    assert reply(model, ASKED, CALLED, ANSWERED, Message("assistant", "x"), ASKED).calls


def test_without_tools_it_answers_all_the_same(model: ScriptedModel) -> None:
    assert reply(model, ASKED, instruction="You are Research, who finds").text.startswith(
        "Research, asking from 10.0.0"
    )


def test_of_a_stranger_it_knows_nothing(model: ScriptedModel) -> None:
    assert reply(model, ASKED, instruction="You are Zed") == Reply("The script has no line for this.")
    assert model.models == ["scripted"]
