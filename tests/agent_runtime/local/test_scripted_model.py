"""The model of examples/02-pallas: rules, and the wire of an OpenAI-compatible server."""

from __future__ import annotations

import json
import sys

import httpx
import pytest

HARPER = {"role": "system", "content": "You are Harper, an orchestrator."}
ASKED = {"role": "user", "content": [{"type": "text", "text": "what {results}?"}]}
TOOLS = [{"type": "function", "function": {"name": "research__research"}}]
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "research__research", "arguments": "{}"}}],
}
ANSWERED = {"role": "tool", "tool_call_id": "c1", "content": "line one\nline two"}


@pytest.fixture
async def model(root, monkeypatch):
    """A client of the model server."""
    project = root / "examples" / "02-pallas"
    monkeypatch.syspath_prepend(str(project))
    from standins import model, script  # noqa: PLC0415 - found only in the example's folder

    app = model.create_app(script.load(project / "standins" / "model.yaml"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://model") as client:
        yield client
    for name in [name for name in sys.modules if name.partition(".")[0] == "standins"]:
        del sys.modules[name]


async def message(model: httpx.AsyncClient, *messages: dict, **more) -> dict:
    reply = await model.post("/v1/chat/completions", json={"model": "scripted", "messages": messages, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["message"]


async def test_calls_the_tools_it_has_with_the_users_words(model):
    said = await message(model, HARPER, ASKED, tools=TOOLS)
    (call,) = said["tool_calls"]
    assert call["function"]["name"] == "research__research"
    assert json.loads(call["function"]["arguments"]) == {"message": "what {results}?"}


async def test_quotes_the_results_of_this_turn_and_leaves_braces_alone(model):
    said = await message(model, HARPER, ASKED, CALLED, ANSWERED, tools=TOOLS)
    assert said["content"] == (
        'Harper asked around about "what {results}?".\n- research__research: line one\n  line two'
    )


async def test_a_new_question_starts_a_new_turn(model):
    said = await message(
        model, HARPER, ASKED, CALLED, ANSWERED, {"role": "assistant", "content": "x"}, ASKED, tools=TOOLS
    )
    assert said["tool_calls"]


async def test_without_tools_it_answers_all_the_same(model):
    assert (await message(model, HARPER, ASKED))["content"].startswith("Harper asked around")


async def test_the_stream_carries_the_same_answer_in_pieces(model):
    for messages in ([HARPER, ASKED], [HARPER, ASKED, CALLED, ANSWERED]):
        body = {"model": "scripted", "messages": messages, "tools": TOOLS}
        whole = (await model.post("/v1/chat/completions", json=body)).json()["choices"][0]
        streamed = await model.post("/v1/chat/completions", json={**body, "stream": True})
        *events, done = [line.removeprefix("data: ") for line in streamed.text.split("\n\n") if line]
        assert done == "[DONE]"
        chunks = [json.loads(event) for event in events]
        assert chunks[-1]["usage"]["total_tokens"] >= 0
        choices = [choice for chunk in chunks for choice in chunk["choices"]]
        assert choices[-1]["finish_reason"] == whole["finish_reason"]
        text = "".join(choice["delta"].get("content") or "" for choice in choices)
        assert text == (whole["message"]["content"] or "")
        pieces = [piece for choice in choices for piece in choice["delta"].get("tool_calls", ())]
        arguments = "".join(piece["function"]["arguments"] for piece in pieces)
        assert arguments == "".join(call["function"]["arguments"] for call in whole["message"].get("tool_calls", ()))


async def test_lists_its_model_and_refuses_nonsense(model):
    assert [one["id"] for one in (await model.get("/v1/models")).json()["data"]] == ["scripted"]
    assert (await model.post("/v1/chat/completions", json={"model": "scripted"})).status_code == 400
    assert (await model.post("/v1/chat/completions", content="{")).status_code == 400
