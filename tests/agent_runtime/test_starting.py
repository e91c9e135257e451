"""Starts that go wrong, or nearly: processes of their own."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client

from pallas_agent_runtime.serve import _own
from pallas_contract.probe.probe import Target

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

    def start(
        config: Any, model: str = "", servers: str = "[]", *, command: bool = False, script: str = "", **env: str
    ) -> Any:
        """As the command that a user runs, or forked from what has imported the runtime, where a script may be it."""
        started.parent = None if command else toolkit.warm_parent
        fleet = {"name": "demo", "agents": {"jarvis": {"module": "agents.jarvis", "port": toolkit.free_port()}}}
        code = MODULE.format(servers=servers, model=model).replace(', model=""', "")
        toolkit.write_files(
            tmp_path,
            {"agents.yaml": fleet, "agents/jarvis.py": code, "fastagent.config.yaml": config},
        )
        started.env = env
        started.start("jarvis", script)
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
    ],
)
def test_a_definition_that_cannot_run_is_one_line_and_code_2(
    agent: Callable[..., Any], config: Any, servers: str, message: str
) -> None:
    started = agent(config, servers=servers, command=True)
    assert started.running["jarvis"].wait(90) == 2
    said = started.log("jarvis").read_text()
    assert "agents.yaml:3:5 agents.jarvis.module: " in said
    assert message in said
    assert "Traceback" not in said


def test_what_fast_agent_does_not_take_is_told_without_its_value(agent: Callable[..., Any]) -> None:
    servers = {"a": {"url": "http://a/mcp", "read_timeout_seconds": "sk-never-shown"}}
    started = agent({"default_model": "passthrough", "mcp": {"servers": servers}})
    assert started.running["jarvis"].wait(90) == 2
    said = started.log("jarvis").read_text()
    assert "fastagent.config.yaml mcp.servers.a." in said
    assert "fast-agent refuses it: " in said
    assert "sk-never-shown" not in said
    assert "Traceback" not in said


def test_without_a_key_it_starts_and_says_so(agent: Callable[..., Any], toolkit: Any) -> None:
    started = agent({"default_model": "openai.gpt-4o", "llm_retries": 0}, command=True)
    started.wait("jarvis")
    assert toolkit.until(lambda: message_of(started)) == "LLM: openai: no API key"
    assert started.end("jarvis") == 0


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_conversations_outlive_a_kill(agent: Callable[..., Any], mode: str) -> None:
    async def talk(*said: str) -> list[str]:
        async with Client(started.url("jarvis"), mode=mode) as client:
            for text in said:
                await client.call_tool("jarvis", {"message": text, "session_id": "s"})
            history = await client.get_prompt("jarvis_history", {"session_id": "s"})
        return [message.content.text for message in history.messages]  # type: ignore[union-attr]

    started = agent({"default_model": "passthrough"}, PALLAS_CONVERSATIONS="kept.db")
    started.wait("jarvis")
    assert asyncio.run(talk("one")) == ["one", "one"]
    started.kill("jarvis")
    started.start("jarvis")
    started.wait("jarvis")
    assert asyncio.run(talk("two")) == ["one", "one", "two", "two"]
    assert started.end("jarvis") == 0


IMPATIENT = """
from pallas_agent_runtime import cli
from pallas_agent_runtime.conversations import sqlite

sqlite.RETRY = 0.05
cli.main(["--agent", "jarvis"])
"""
"""As the command, but it looks more often whether a file can be written to again."""


def test_conversations_that_cannot_be_kept_are_in_the_health_of_the_agent_until_they_can(
    agent: Callable[..., Any], toolkit: Any
) -> None:
    async def say(text: str) -> bool:
        async with Client(started.url("jarvis")) as client:
            return bool((await client.call_tool("jarvis", {"message": text, "session_id": "s"})).is_error)

    started = agent({"default_model": "passthrough"}, script=IMPATIENT, PALLAS_CONVERSATIONS="kept.db")
    started.wait("jarvis")
    assert toolkit.until(lambda: message_of(started) is None)
    # a file that may not grow stands for a disk that is full
    resource.prlimit(started.running["jarvis"].pid, resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
    assert asyncio.run(say("x" * 100_000)) is False, "who calls is answered all the same"
    assert toolkit.until(lambda: message_of(started)).startswith("Conversations: not kept: ")
    assert json.loads(started.get("jarvis", "/healthz")[1])["status"] == "degraded"
    resource.prlimit(started.running["jarvis"].pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert toolkit.until(lambda: message_of(started) is None or None), "without another turn"
    assert started.end("jarvis") == 0


def test_a_file_for_conversations_that_cannot_be_used_is_one_line_and_code_2(agent: Callable[..., Any]) -> None:
    started = agent({"default_model": "passthrough"}, PALLAS_CONVERSATIONS="no/such/kept.db")
    assert started.running["jarvis"].wait(90) == 2
    said = started.log("jarvis").read_text()
    path = started.folder / "no/such/kept.db"
    assert said == f"$PALLAS_CONVERSATIONS: {path}: no such file or directory [PAL011]\n"


def test_a_dead_server_of_its_own_does_not_stop_the_start(agent: Callable[..., Any], toolkit: Any) -> None:
    servers = {"argos": {"url": f"http://127.0.0.1:{toolkit.free_port()}/mcp", "load_on_start": True}}
    started = agent({"default_model": "passthrough", "mcp": {"servers": servers}}, servers="['argos']")
    started.wait("jarvis")
    assert toolkit.until(lambda: message_of(started)) == "Unreachable: argos"


BOUNDLESS = """
import json, sys

info = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
results = {"initialize": info, "tools/list": {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}}
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/call":
        print("x" * (3 << 20), flush=True)
    elif "id" in message:
        result = results.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_server_that_answers_without_an_end_ends_its_call_and_not_the_agent(
    agent: Callable[..., Any], tmp_path: Path
) -> None:
    async def read() -> str:
        async with Client(started.url("jarvis")) as client:
            answer = await client.call_tool("jarvis", {"message": "***CALL_TOOL notes__read {}"})
        return str(answer.content[0].text)  # type: ignore[union-attr]

    (tmp_path / "notes.py").write_text(BOUNDLESS)
    servers = {"notes": {"command": sys.executable, "args": ["-I", "notes.py"], "protocol_mode": "legacy"}}
    config = {"default_model": "passthrough", "mcp": {"servers": servers}}
    started = agent(config, servers="['notes']", PALLAS_MAX_BODY=str(2 << 20))
    started.wait("jarvis")
    for _ in range(2):
        assert asyncio.run(read()).endswith("server 'notes' answered with more than 2 MiB")
    assert started.end("jarvis") == 0


def test_a_call_refused_for_its_callers_sake_says_nothing_of_the_agents_token() -> None:
    urls = {
        "notes": "http://notes",
        "colleague": "http://colleague",
        "crm": "http://crm",
        "a": "http://one",
        "b": "http://one",
    }
    settings: Any = SimpleNamespace(peers={"colleague": ""}, forward={"crm"})
    assert _own(settings, {name: Target(url) for name, url in urls.items()}) == {"notes"}
