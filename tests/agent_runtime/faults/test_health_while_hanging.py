"""`get_health` while what the agent depends on hangs: at once, from what was seen last, and without the model."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.waits]


@pytest.fixture(scope="module")
def wire(parts: Any) -> Iterator[Any]:
    with parts.argos_serving() as argos, parts.Wire(argos.port).open() as wire:
        wire.turn("silent")
        yield wire


@pytest.fixture(scope="module")
def model(toolkit: Any, parts: Any) -> Iterator[Any]:
    yield from toolkit.serve_model(toolkit.Model(parts.scripted, models=["m"]))


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    """Port where connections are made and nobody ever answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def scout(toolkit: Any, wire: Any, model: Any, silent: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An agent whose only server takes connections and never says a word, and one whose model's API is like that."""
    files = {
        "agents.yaml": {
            "name": "h",
            "registry_port": toolkit.free_port(),
            "agents": {
                "scout": {"card": "scout.md", "port": toolkit.free_port()},
                "lens": {
                    "card": "lens.md",
                    "port": toolkit.free_port(),
                    "env": {"OPENAI_BASE_URL": f"http://127.0.0.1:{silent}/v1"},
                },
            },
        },
        "lens.md": "---\ntype: agent\nname: lens\n---\nYou are Lens.\n",
        "scout.md": "---\ntype: agent\nname: scout\nservers: [argos]\n---\nYou are Scout.\n",
        "fastagent.config.yaml": {
            "default_model": "openai.m",
            "mcp": {"servers": {"argos": {"url": f"http://127.0.0.1:{wire.port}/mcp"}}},
        },
        ".env": f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n",
    }
    folder = toolkit.write_files(tmp_path_factory.mktemp("hanging"), files)
    with toolkit.running(folder, "scout", "lens", PALLAS_CONNECT_TIMEOUT="5") as agents:
        agents.first_pages = {name: page(agents, name) for name in ("scout", "lens")}
        yield agents


def page(agents: Any, name: str = "scout") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(agents.get(name, "/healthz")[1])
    return found


def test_the_first_answer_knows_of_the_server_that_hangs(scout: Any) -> None:
    """A start waits for the first round, so nobody is told `ok` and then the truth; nor `degraded` and then `ok`."""
    first = scout.first_pages["scout"]
    assert (first["status"], first["message"]) == ("degraded", "Unreachable: argos")
    assert first["downstream"]["argos"]["reason"] == "no answer in 3 s"


def test_a_provider_that_takes_longer_than_a_round_is_not_vouched_for(scout: Any, toolkit: Any) -> None:
    """Nor does it hold back the start until its own five seconds are over."""
    first, down = scout.first_pages["lens"], "LLM: openai: no answer in 5 s"
    assert first["status"] == "degraded"
    assert first["message"] in ("Not checked yet: openai", down)  # the second on a machine that was held up
    toolkit.until(lambda: page(scout, "lens")["message"] == down or None)


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
async def test_the_answer_waits_for_nobody(scout: Any, wire: Any, model: Any, toolkit: Any, era: str) -> None:
    degraded = lambda: page(scout)["status"] == "degraded" or None  # noqa: E731
    await asyncio.to_thread(toolkit.until, degraded)
    async with Client(scout.url("scout"), mode=era) as client:
        await client.list_tools()
        await asyncio.to_thread(toolkit.until, lambda: None if wire.waiting else True)
        await asyncio.to_thread(toolkit.until, lambda: wire.waiting or None)  # a probe that has three seconds to go
        before = page(scout)
        result = await client.call_tool("get_health", {})
        assert wire.waiting  # still
    answer = json.loads(result.content[0].text)
    assert answer == result.structured_content
    assert (answer["status"], answer["message"]) == ("degraded", "Unreachable: argos")
    seen = before["downstream"]["argos"]
    assert (seen["state"], seen["reason"], seen["age"] > 0) == ("error", "no answer in 3 s", True)
    assert model.requests == []


async def test_the_answer_says_when_it_was_looked_at(scout: Any, wire: Any, toolkit: Any) -> None:
    """The time is that of the last round of probes, the same until the next one is through."""

    async def told(client: Client) -> datetime:
        result = await client.call_tool("get_health", {})
        return datetime.fromisoformat(json.loads(result.content[0].text)["timestamp"])

    async with Client(scout.url("scout"), mode="legacy") as client:
        await asyncio.to_thread(toolkit.until, lambda: None if wire.waiting else True)
        await asyncio.to_thread(toolkit.until, lambda: wire.waiting or None)
        first, again, known = await told(client), await told(client), page(scout)
        assert first == again
        # the round before ended five seconds before this one began
        age = (datetime.now(UTC) - first).total_seconds()
        assert known["downstream"]["argos"]["age"] <= age + 1
        assert age > 4
        await asyncio.to_thread(toolkit.until, lambda: None if wire.waiting else True)
        await asyncio.to_thread(toolkit.until, lambda: page(scout)["timestamp"] > known["timestamp"] or None)
