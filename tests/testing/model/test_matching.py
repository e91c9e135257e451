"""Which rule answers, how often, and what is said where none does."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_testing.model import (
    AgentScript,
    Failure,
    Image,
    Message,
    Reply,
    Request,
    Rule,
    Script,
    Tool,
    ToolCall,
    Unscripted,
)
from pallas_testing.model.matching import Matcher

TOOLS = {"look": Tool("", {}), "listen": Tool("", {})}


def request(text: str = "hello", instruction: str = "You are\n  Harper.", **more: Any) -> Request:
    messages = (Message("user", text), *more.pop("after", ()))
    return Request(
        **{"api": "chat", "model": "m", "instruction": instruction, "messages": messages, "tools": TOOLS} | more
    )


def said(matcher: Matcher, asked: Request) -> str:
    result = matcher.answer(asked).result
    assert isinstance(result, Reply)
    return result.text


def script(*rules: dict[str, Any], **more: Any) -> Matcher:
    return Matcher(Script(rules=[Rule(**rule) for rule in rules], **more))


def test_the_first_agent_that_fits_and_its_first_rule_then_everybodys() -> None:
    harper = AgentScript(instruction="You are Harper", rules=[Rule(user="^hi", say="Hi."), Rule(user="hi", say="?")])
    other = AgentScript(model="m", rules=[Rule(say="never asked about hi")])
    matcher = script({"say": "all"}, agents={"harper": harper, "other": other})
    assert [said(matcher, request(text)) for text in ("HI there", "oh, hi", "hello")] == ["Hi.", "?", "all"]
    assert said(matcher, request(instruction="You are Research")) == "never asked about hi"
    assert said(matcher, request(instruction="You are Research", model="n")) == "all"


def test_a_rule_answers_as_often_as_it_says_and_is_missed_otherwise() -> None:
    matcher = script({"say": "one", "times": 1}, {"say": "two", "times": 2})
    assert matcher.unused() == ["rules.0: scripted 1 times, asked 0 times", "rules.1: scripted 2 times, asked 0 times"]
    assert [said(matcher, request()) for _ in range(2)] == ["one", "two"]
    assert matcher.unused() == ["rules.1: scripted 2 times, asked 1 times"]
    assert said(matcher, request()) == "two"
    assert matcher.unused() == []
    with pytest.raises(Unscripted, match=r"rules\.1: has answered its 2 times"):
        matcher.answer(request())


@pytest.mark.parametrize(
    ("rule", "more", "reason"),
    [
        ({"user": "bye"}, {}, "the user's message does not match 'bye'"),
        ({"results": True}, {}, "no tool has answered yet"),
        ({"results": False}, {"after": (Message("tool", "x", tool="look"),)}, "a tool has answered already"),
        ({"results": "y"}, {"after": (Message("tool", "x", tool="look"),)}, "no result matches 'y'"),
        ({"tools": ["look", "smell"]}, {}, "the agent does not have smell"),
        ({"images": 1}, {}, "wants 1 images, and there are 0"),
        (
            {"images": ["image/png"]},
            {"after": (Message("tool", images=(Image("image/gif"),)),)},
            "wants the images image/png, and there are image/gif",
        ),
        ({"structured": True}, {}, "the answer is free text"),
        ({"structured": False}, {"schema": {}}, "the answer has to fit a schema"),
        ({"call": [{"tool": "smell"}]}, {}, "calls smell, which the agent does not have (`if_missing` allows it)"),
        ({"call": [{"tool": "smell", "if_missing": "skip"}]}, {}, "the agent has none of the tools that it calls"),
    ],
)
def test_a_rule_that_does_not_fit_says_why(rule: dict[str, Any], more: dict[str, Any], reason: str) -> None:
    matcher = script(rule if "call" in rule else {**rule, "say": "x"})
    with pytest.raises(Unscripted) as raised:
        matcher.answer(request(**more))
    assert f"rules.0: {reason}" in str(raised.value)


def test_what_nobody_scripted_is_printed_with_the_agents_that_it_is_not() -> None:
    matcher = script(agents={"ann": AgentScript(instruction="I am Ann", rules=[Rule(say="x")])})
    with pytest.raises(Unscripted) as raised:
        matcher.answer(request("long " * 200))
    text = str(raised.value)
    assert "instruction: You are Harper." in text
    assert "agents.ann: the instruction does not have 'I am Ann'" in text
    assert max(map(len, text.splitlines())) < 320


def test_a_script_that_is_not_strict_always_has_an_answer() -> None:
    assert said(script(strict=False), request()) == "The script has no line for this."


def test_tools_that_are_missing_may_be_skipped_or_called() -> None:
    calls = [{"tool": "look"}, {"tool": "smell", "if_missing": "skip"}, {"tool": "taste", "if_missing": "call"}]
    result = script({"call": calls}).answer(request()).result
    assert result == Reply(calls=(ToolCall("look", {}), ToolCall("taste", {})))


def test_templates_are_filled_once_and_other_braces_stay() -> None:
    after = (Message("assistant", calls=(ToolCall("look", {}),)), Message("tool", "{user}", tool="look"))
    matcher = script({"say": "{results} {caller} {x} {user}"})
    assert (
        said(matcher, request("{results}", after=after, caller="10.0.0.1")) == "- look: {user} 10.0.0.1 {x} {results}"
    )


def test_structured_output_is_the_call_of_the_tool_that_is_forced() -> None:
    result = script({"json": {"a": 1}}).answer(request(forced_tool="form")).result
    assert result == Reply(calls=(ToolCall("form", {"a": 1}),))


def test_how_an_answer_is_sent_is_passed_on() -> None:
    answer = script({"say": "x", "delay": 1, "per_token": 0.5, "cut_after": 3}).answer(request())
    assert (answer.delay, answer.per_token, answer.cut_after, answer.hang) == (1, 0.5, 3, False)
    failure = script({"error": {"status": 529, "type": "busy", "retry_after": 2}}).answer(request()).result
    assert failure == Failure(529, "the script says so", "busy", 2)
