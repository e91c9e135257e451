"""Starts that go wrong, or nearly: real processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

MODULE = """
from fast_agent import FastAgent

fast = FastAgent("Jarvis")


@fast.agent(name="jarvis", instruction="x", servers={servers}, model="{model}")
async def jarvis() -> None: ...
"""


@pytest.fixture
def agent(toolkit: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start `jarvis` of a project made for it."""
    started = toolkit.Agents(tmp_path)

    def start(config: Any, model: str = "", servers: str = "[]", **env: str) -> Any:
        fleet = {"name": "demo", "agents": {"jarvis": {"module": "agents.jarvis", "port": toolkit.free_port()}}}
        code = MODULE.format(servers=servers, model=model).replace(', model=""', "")
        toolkit.write_files(
            tmp_path,
            {"agents.yaml": fleet, "agents/jarvis.py": code, "fastagent.config.yaml": config},
        )
        started.env = env
        started.start("jarvis")
        return started

    yield start
    started.close()


def message_of(started: Any) -> str | None:
    """What `/healthz` complains of; None while it does not."""
    said: str | None = json.loads(started.get("jarvis", "/healthz")[1]).get("message")
    return said


@pytest.mark.parametrize(
    ("config", "servers", "message"),
    [
        ({"default_model": "passthrough"}, "['argos']", "Missing server configuration for agent 'jarvis'"),
        ({"default_model": "nonsense.model"}, "[]", "fast-agent cannot start it: "),
        ({"default_model": "passthrough", "mcp": {"servers": {"a": {"transport": 7}}}}, "[]", "cannot be imported: "),
    ],
)
def test_a_definition_that_cannot_run_is_one_line_and_code_2(
    agent: Callable[..., Any], config: Any, servers: str, message: str
) -> None:
    started = agent(config, servers=servers)
    assert started.running["jarvis"].wait(90) == 2
    said = started.log("jarvis").read_text()
    assert "agents.yaml:3:5 agents.jarvis.module: " in said
    assert message in said
    assert "Traceback" not in said


def test_without_a_key_it_starts_and_says_so(agent: Callable[..., Any], toolkit: Any) -> None:
    started = agent({"default_model": "openai.gpt-4o", "llm_retries": 0})
    started.wait("jarvis")
    assert toolkit.until(lambda: message_of(started)) == "LLM: openai: no API key"
    assert started.end("jarvis") == 0


def test_a_dead_server_of_its_own_does_not_stop_the_start(agent: Callable[..., Any], toolkit: Any) -> None:
    servers = {"argos": {"url": f"http://127.0.0.1:{toolkit.free_port()}/mcp", "load_on_start": True}}
    started = agent({"default_model": "passthrough", "mcp": {"servers": servers}}, servers="['argos']")
    started.wait("jarvis")
    assert toolkit.until(lambda: message_of(started)) == "Unreachable: argos"
