"""Around the answers: the list of models, requests that are none, callers that hang up."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from pallas_testing.model import Failure, Reply, ScriptedModel, serving
from pallas_testing.model.cassette.recording import Recorder
from pallas_testing.model.server import Scripted, create_app
from pallas_testing.model.serving import Server

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def http(scripted_model: ScriptedModel) -> Any:
    return httpx.Client(base_url=scripted_model.url, timeout=60, verify=False)


def test_models_are_listed_in_both_ways(scripted_model: ScriptedModel, http: httpx.Client) -> None:
    with http:
        assert [entry["id"] for entry in http.get("/v1/models").json()["data"]] == ["scripted"]
        assert http.get("/v1/models/scripted").json()["id"] == "scripted"
        assert http.get("/v1/models/other").status_code == 404
        assert http.get("/v1/responses").status_code == 404  # where a client tries a WebSocket


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", "{"),
        ("chat/completions", "[]"),
        ("chat/completions", '{"model": "m"}'),
        ("chat/completions", '{"model": "m", "messages": [1]}'),
        ("responses", '{"model": "m", "input": "x", "previous_response_id": "r"}'),
        ("responses", '{"model": "m", "input": [{"content": "x"}]}'),
        ("messages", '{"model": "m", "messages": [{"role": "user", "content": [{}]}]}'),
    ],
)
def test_what_is_no_request_is_refused(http: httpx.Client, scripted_model: ScriptedModel, path: str, body: str) -> None:
    with http:
        answer = http.post(f"/v1/{path}", content=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "not a request of this API" in answer.json()["error"]["message"]
    assert scripted_model.problems() == [answer.json()["error"]["message"]]
    scripted_model.unscripted.clear()


def test_an_api_that_it_does_not_have_is_a_call_nobody_scripted(
    scripted_model: ScriptedModel, http: httpx.Client
) -> None:
    with http:
        answer = http.post("/v1/embeddings", json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "unscripted_call")
    (problem,) = scripted_model.problems()
    assert problem.startswith("POST /v1/embeddings is no API")
    scripted_model.unscripted.clear()


@pytest.mark.parametrize("rule", [{"hang": True}, {"say": "x", "delay": 3600}, {"say": "x y", "per_token": 3600}])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_caller_that_hangs_up_is_noticed_at_once(
    scripted_model: ScriptedModel, rule: dict[str, Any], stream: bool
) -> None:
    scripted_model.rule(**rule)
    async with httpx.AsyncClient(base_url=scripted_model.url, timeout=60, verify=False) as http:
        call = asyncio.create_task(http.post("/v1/chat/completions", json={**CHAT, "stream": stream}))
        async with asyncio.timeout(60):
            while not scripted_model.requests:
                await asyncio.sleep(0.01)
            call.cancel()
            while not scripted_model.abandoned:
                await asyncio.sleep(0.01)
    assert scripted_model.abandoned == scripted_model.requests


async def test_a_slow_answer_comes_in_pieces(scripted_model: ScriptedModel) -> None:
    """The first event is there, while the first word would take an hour."""
    scripted_model.rule(say="one two", per_token=3600)
    async with (
        httpx.AsyncClient(base_url=scripted_model.url, timeout=60, verify=False) as http,
        http.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer,
    ):
        lines = answer.aiter_lines()
        assert '"role": "assistant"' in await anext(lines)


async def test_the_end_of_the_server_ends_what_hangs() -> None:
    model = ScriptedModel()
    model.rule(hang=True)
    server = Server(Scripted(model))
    server.config.timeout_graceful_shutdown = None  # else uvicorn would end it, three seconds later
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
        async with asyncio.timeout(60), httpx.AsyncClient(timeout=60, verify=False) as http:
            running = asyncio.create_task(server.serve([listener]))
            call = asyncio.create_task(http.post(url, json=CHAT))
            while not model.requests:
                await asyncio.sleep(0.01)
            server.should_exit = True
            await running
            assert (await call).status_code == 500


def test_answers_may_be_a_function(tmp_path: Path) -> None:
    model = ScriptedModel(function=lambda request: Reply(request.user.upper()) if request.user != "rule" else None)
    model.rule(say="by a rule")
    with serving(model), httpx.Client(base_url=model.url, verify=False, timeout=60) as http:
        texts = []
        for text in ("hello", "rule"):
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            texts.append(http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"])
    assert texts == ["HELLO", "by a rule"]
    model.verify()


def test_a_function_that_fails_is_told() -> None:
    model = ScriptedModel(function=lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    with serving(model), httpx.Client(base_url=model.url, verify=False, timeout=60) as http:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        assert http.post("/v1/chat/completions", json=body).status_code == 500
    assert model.problems() == ["the function that answers has failed: ZeroDivisionError: division by zero"]


def test_a_rule_of_one_agent_is_asked_before_those_of_everybody(http: httpx.Client, scripted_model: Any) -> None:
    scripted_model.rule(say="everybody")
    scripted_model.rule(instruction="You are Ann", say="Ann", times=2)
    asked = [{"role": "system", "content": "You are Ann."}, *CHAT["messages"]]
    with http:
        answer = http.post("/v1/chat/completions", json={"model": "m", "messages": asked})
    assert answer.json()["choices"][0]["message"]["content"] == "Ann"
    with pytest.raises(AssertionError, match=r"agents\.You are Ann\.rules\.0: scripted 2 times, asked 1 times"):
        scripted_model.verify()
    scripted_model.follow(type(scripted_model._matcher.script)())


async def test_the_kubelet_sees_no_outage_and_so_does_not_end_it(scripted_model: ScriptedModel) -> None:
    scripted_model.outage = Failure(503)
    async with httpx.AsyncClient(base_url=scripted_model.url, verify=False, timeout=60) as http:
        agents = {"user-agent": "python-httpx/0.28"}
        kubelet = {"user-agent": "kube-probe/1.34"}
        answers = [await http.get("/v1/models", headers=headers) for headers in (agents, kubelet)]
    assert [answer.status_code for answer in answers] == [503, 200]


async def test_an_outage_of_a_recorded_provider_is_refused_and_its_end_is_not(tmp_path: Path) -> None:
    recorder = Recorder("http://provider.example", tmp_path / "cassette.yaml", print)
    transport = httpx.ASGITransport(create_app(recorder))
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as http:
        refused = await http.put("/outage", json={"status": 503})
        assert (refused.status_code, refused.json()["error"]["message"].partition(":")[0]) == (
            409,
            "the model records a provider",
        )
        assert (await http.delete("/outage")).status_code == 204
    await recorder.close()
