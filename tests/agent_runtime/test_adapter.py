"""From a function call of a model to its answer, on both sides of the adapter, with the tools of examples/05-atlas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_testing import model as scripted
from tests.example_folder import make_importable

make_importable("05-atlas", "home_tools")

from home_tools.clock import SystemClock  # noqa: E402
from home_tools.home import opened  # noqa: E402
from home_tools.server import server  # noqa: E402
from home_tools.settings import Settings  # noqa: E402

pytestmark = pytest.mark.slow

WEATHER = "home_tools__weather"
NOWHERE = "there is no place `The Lake`: name a town"
OSLO = "The weather in Oslo, Norway is -4°C and snowing, wind 12 km/h."


@dataclass
class Adapted:
    """The agent of the family, the model that it asks, and what its server of tools was sent."""

    agent: Any
    model: scripted.ScriptedModel
    sent: list[dict[str, Any]]

    async def ask(self, text: str) -> str:
        async with Client(self.agent.url("family")) as client:
            answer = await client.call_tool("family", {"message": text})
        return str(answer.content[-1].text)


def recorded(app: ASGIApp, sent: list[dict[str, Any]]) -> ASGIApp:
    """Return `app`, which notes each message that it is sent."""

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        async def noted() -> Message:
            message = await receive()
            if body := message.get("body"):
                sent.append(json.loads(body))
            return message

        await app(scope, noted if scope["type"] == "http" else receive, send)

    return noting


@pytest.fixture
def adapted(toolkit: Any, root: Path, tmp_path: Path) -> Iterator[Adapted]:
    example = root / "examples" / "05-atlas"
    home = opened(replace(Settings.read({}), state=tmp_path), SystemClock())
    sent: list[dict[str, Any]] = []
    with ExitStack() as stack:
        stack.callback(home.timers.store.close)
        model = stack.enter_context(scripted.serving(scripted.ScriptedModel(example / "standins" / "model.yaml")))
        url = stack.enter_context(
            toolkit.serving(recorded(server(home).streamable_http_app(stateless_http=True), sent))
        )
        family = {"card": "family.md", "port": toolkit.free_port()}
        settings = yaml.safe_load((example / "fastagent.config.yaml").read_text())
        files = {
            "agents.yaml": {"name": "atlas", "registry_port": toolkit.free_port(), "agents": {"family": family}},
            "family.md": (example / "agents" / "family.md").read_text(),
            "fastagent.config.yaml": {**settings, "mcp": {"servers": {"home_tools": {"url": f"{url}/mcp"}}}},
        }
        folder = toolkit.write_files(tmp_path / "project", files)
        agent = stack.enter_context(toolkit.running(folder, "family", **model.environ()))
        yield Adapted(agent, model, sent)


async def test_a_function_call_is_a_call_of_the_tool_and_its_answer_or_error_goes_back_to_the_model(
    adapted: Adapted,
) -> None:
    assert OSLO in await adapted.ask("How is the weather at the lake?")
    first, second, third = adapted.model.requests

    listed = next(tool["function"] for tool in first.body["tools"] if tool["function"]["name"] == WEATHER)
    assert listed["description"].startswith("Get the current weather")
    assert listed["parameters"]["required"] == ["location"]

    calls = [message["params"] for message in adapted.sent if message["method"] == "tools/call"]
    assert [(call["name"], call["arguments"]) for call in calls] == [
        ("weather", {"location": "The Lake"}),
        ("weather", {"location": "Oslo"}),
    ]

    # what is wrong is an answer like any other, in the place of the call: the model has read it, and called again
    for request, place, said in ((second, "The Lake", NOWHERE), (third, "Oslo", OSLO)):
        called, answered = request.body["messages"][-2:]
        (call,) = called["tool_calls"]
        assert (call["type"], call["function"]["name"]) == ("function", WEATHER)
        assert json.loads(call["function"]["arguments"]) == {"location": place}
        assert (answered["role"], answered["tool_call_id"]) == ("tool", call["id"])
        assert said in str(answered["content"])
