"""The official clients of each API, streaming or not, understand what the scripted model says, and it them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pallas_testing.model import Image, ScriptedModel, ToolCall
from tests.testing.model.conftest import PNG, SCHEMA

ENDS = {
    "chat": {"stop": "stop", "length": "length", "calls": "tool_calls"},
    "responses": {"stop": "completed", "length": "incomplete", "calls": "completed"},
    "messages": {"stop": "end_turn", "length": "max_tokens", "calls": "tool_use"},
}


async def test_a_text(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(user="hello", say="Good morning,\n  {user}! Ünïcode. ")
    got = await client.ask("hello")
    assert (got.text, got.calls) == ("Good morning,\n  hello! Ünïcode. ", [])
    assert got.reason == ENDS[client.api]["stop"]
    (request,) = scripted_model.requests
    assert (request.api, request.stream, request.model) == (client.api, client.stream, "scripted")
    assert (request.instruction, request.user, sorted(request.tools)) == ("You are Harper", "hello", ["listen", "look"])


async def test_an_answer_that_ends_too_early(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(say="as far as", finish="length")
    if client.stream and client.api != "messages":  # OpenAI's client takes it for an error
        with pytest.raises(Exception, match=r"length limit was reached|Didn't receive a `response.completed`"):
            await client.ask()
        return
    got = await client.ask()
    assert (got.text, got.reason) == ("as far as", ENDS[client.api]["length"])


async def test_parallel_calls_with_a_text_before_them(scripted_model: ScriptedModel, client: Any) -> None:
    calls = [{"tool": "look", "arguments": {"at": "{user}", "n": [1, "é"]}}, {"tool": "listen"}]
    scripted_model.rule(say="Let me see.", call=calls)
    got = await client.ask("the moon and the stars")
    assert got.text == "Let me see."
    assert got.calls == [("look", {"at": "the moon and the stars", "n": [1, "é"]}), ("listen", {})]
    assert got.reason == ENDS[client.api]["calls"]


async def test_results_of_tools(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(results=False, say="nobody answered")
    scripted_model.rule(results="three", say="They say:\n{results}")
    assert (await client.ask(result="three {user}\nfour")).text == "They say:\n- look: three {user}\n  four"
    (request,) = scripted_model.requests
    assert request.messages[1].calls == (ToolCall("look", {"at": "it"}),)


async def test_structured_output(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(structured=False, say="free")
    scripted_model.rule(structured=True, json={"size": 3, "of": "{user}"})
    assert json.loads((await client.ask("shoes", schema=SCHEMA)).text) == {"size": 3, "of": "shoes"}
    (request,) = scripted_model.requests
    assert request.schema is not None
    assert request.schema["required"] == ["size"]


async def test_images_arrive(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(images=["image/png"], say="a dot")
    assert (await client.ask(image=PNG)).text == "a dot"
    assert scripted_model.requests[0].images == (Image("image/png", PNG),)


@pytest.mark.parametrize(
    ("written", "status", "words"),
    [
        ({"status": 401, "message": "no such key"}, 401, "no such key"),
        ({"status": 429, "retry_after": 7}, 429, "the script says so"),
        ({"status": 500}, 500, "the script says so"),
    ],
)
async def test_errors_are_the_clients_own(
    scripted_model: ScriptedModel, client: Any, written: dict[str, Any], status: int, words: str
) -> None:
    scripted_model.rule(error=written)
    with pytest.raises(Exception, match=words) as raised:
        await client.ask()
    kinds = {401: "AuthenticationError", 429: "RateLimitError", 500: "InternalServerError"}
    assert type(raised.value).__name__ == kinds[status]
    response = raised.value.response  # type: ignore[attr-defined]
    assert response.headers.get("retry-after") == ({429: "7"}.get(status))


async def test_an_answer_that_never_comes(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(hang=True)
    client.timeout = 0.2
    with pytest.raises(Exception, match="timed out"):
        await client.ask()


async def test_a_cut_answer_is_an_error_of_the_connection(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(say="one two three four", cut_after=2)
    with pytest.raises(Exception, match=r"(?i)incomplete|peer closed|connection|without completing"):
        await client.ask()


async def test_an_unscripted_call_fails_at_the_client_and_says_why(scripted_model: ScriptedModel, client: Any) -> None:
    scripted_model.rule(user="^bye", say="bye")
    with pytest.raises(Exception, match="nobody scripted this call") as raised:
        await client.ask("hello", image=PNG)
    assert type(raised.value).__name__ == "BadRequestError"
    (text,) = scripted_model.unscripted
    assert "user: hello\n  image: image/png of 70 bytes" in text
    assert "tools: listen, look" in text
    assert "rules.0: the user's message does not match '^bye'" in text
    scripted_model.unscripted.clear()
