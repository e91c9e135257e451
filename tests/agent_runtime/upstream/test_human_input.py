"""The examples that ask a human: their caller is asked, in either era, and nobody at the terminal of the agent."""

from __future__ import annotations

from typing import Any

import mcp_types as t
import pytest
from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.beside]

SANDBOX = "***CALL_TOOL sandbox_server__start_t4_small_sandbox {}"
NOBODY = "No human can be asked: the caller's client takes no questions: it does not declare `elicitation`"


class Human:
    """A client's callback: it accepts with `content`, or does what `action` says."""

    def __init__(self, action: str = "accept", **content: Any) -> None:
        self._result = t.ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> t.ElicitResult:
        self.asked.append(params)
        return self._result


async def call(examples: Any, agent: str, message: str, era: str, human: Human | None = None) -> Any:
    async with Client(examples.url(agent), mode=era, elicitation_callback=human) as client:
        result = await client.call_tool("send_message", {"message": message})
        return result.content[0].text


async def test_human_input_asks_the_caller(examples: Any, era: str) -> None:
    human = Human(size="large")
    assert '{"size": "large"}' in await call(examples, "asking", "A pizza, please.", era, human)
    (asked,) = human.asked
    assert asked.message == "Which size?"
    assert asked.requested_schema == {
        "type": "object",
        "properties": {"size": {"type": "string"}},
        "required": ["size"],
    }


@pytest.mark.parametrize(
    ("action", "text"), [("decline", "The human declined to answer."), ("cancel", "The human cancelled.")]
)
async def test_a_human_may_decline(examples: Any, era: str, action: str, text: str) -> None:
    assert text in await call(examples, "asking", "A pizza, please.", era, Human(action))


async def test_a_caller_without_a_human_is_told_so_at_once(examples: Any, era: str) -> None:
    examples.model.requests.clear()
    await call(examples, "asking", "A pizza, please.", era)
    _, after = examples.model.requests
    assert (after.messages[-1].role, after.messages[-1].text) == ("tool", NOBODY)
    assert list(after.tools) == ["human_input"]


async def test_the_question_of_a_server_goes_to_the_caller(examples: Any, era: str) -> None:
    human = Human(region="eu-west-1", duration_hours=2, max_budget_usd=1.0)
    answer = await call(examples, "sandbox", SANDBOX, era, human)
    assert "SIMULATED: started sandbox" in answer
    assert "Region: eu-west-1" in answer
    assert [asked.message for asked in human.asked] == ["Start t4-small sandbox at $0.40 per hour?"]


async def test_a_server_of_the_handshake_era_asks_too(examples: Any, era: str) -> None:
    """Its question comes on a connection that was made before the call, and goes to the caller all the same."""
    human = Human(size="small")
    assert '"content": {"size": "small"}' in await call(examples, "data_analysis", "ask a human", era, human)
    assert [asked.message for asked in human.asked] == ["Which size?"]
    assert NOBODY in await call(examples, "data_analysis", "ask a human", era)


async def test_a_server_is_told_that_nobody_can_be_asked(examples: Any, era: str) -> None:
    assert NOBODY in await call(examples, "sandbox", SANDBOX, era)


async def test_a_handler_of_the_example_answers_itself(examples: Any, era: str) -> None:
    human = Human("cancel")
    assert "Region: eu-west-1" in await call(examples, "sandbox_custom", SANDBOX, era, human)
    assert human.asked == []


async def test_a_handler_that_asks_at_the_terminal_finds_nobody_there(examples: Any, era: str) -> None:
    """It is the example's own, for a URL: what it makes of an empty terminal is its answer."""
    human = Human()
    message = '***CALL_TOOL url_server__request_console_access {"sandbox_id": "s1"}'
    assert "SIMULATED: navigation cancelled for s1; no URL was opened" in await call(
        examples, "url_demo", message, era, human
    )
    assert human.asked == []


def test_nothing_was_asked_at_the_terminal(examples: Any) -> None:
    """Of the tests before: fast-agent's forms say so on stdout, which is in the log."""
    for agent in ("asking", "sandbox"):
        log = examples.agents[agent].log("several").read_text()
        assert "not a terminal" not in log
        assert "Form error" not in log
