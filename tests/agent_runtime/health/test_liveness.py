"""A program that hangs is told, and told no more once it answers: asked of connections, and of real programs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import mcp_types as t
import pytest
from fast_agent import FastAgent
from mcp.shared.exceptions import MCPError

from pallas_agent_runtime import serve
from pallas_agent_runtime.calls.arguments import Question
from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.conversations.store import Conversations, MemoryStore
from pallas_agent_runtime.engine import Engine, Forwarding, Loaded, Programs, weigh
from pallas_agent_runtime.health import liveness
from pallas_contract.probe.probe import LEGACY, MODERN

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])


class Connection:
    """A connection whose questions have these outcomes, one after the other."""

    def __init__(self, era: str, *outcomes: Exception | None) -> None:
        self.protocol_version = era
        self.session = SimpleNamespace(send_discover=self._discover)
        self.asked: list[str] = []
        self._outcomes = list(outcomes)

    async def ping(self) -> None:
        self._answer("ping")

    async def _discover(self, version: str) -> None:
        self._answer(f"discover {version}")

    def _answer(self, question: str) -> None:
        self.asked.append(question)
        if outcome := self._outcomes.pop(0):
            raise outcome


@ERAS
@pytest.mark.parametrize(
    "outcome", [None, MCPError(t.METHOD_NOT_FOUND, "no ping here"), ValueError("no answer of MCP")]
)
async def test_any_answer_shows_that_it_lives(era: str, outcome: Exception | None) -> None:
    connection = Connection(era, outcome)
    await liveness.answered(connection)
    assert connection.asked == ["ping" if era == LEGACY else f"discover {MODERN}"]


async def test_no_answer_in_time_is_none_and_it_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "PING", 0.0)
    connection = Connection(MODERN, MCPError(t.REQUEST_TIMEOUT, "timed out"), None)
    await liveness.answered(connection)
    assert len(connection.asked) == 2


async def test_a_closed_connection_never_answers() -> None:
    connection = Connection(LEGACY, MCPError(t.CONNECTION_CLOSED, "closed"))
    waiting = asyncio.create_task(liveness.answered(connection))
    while not connection.asked:
        await asyncio.sleep(0)
    assert not (await asyncio.wait([waiting], timeout=0))[0]
    waiting.cancel()


SERVER = """
import json, os, sys

open("pid", "w").write(str(os.getpid()))
about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
results = {
    "initialize": {"protocolVersion": "2025-11-25", **about},
    "tools/list": {"tools": []},
}
if sys.argv[1] == "2026-07-28":
    results = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [], "ttlMs": 0, "cacheScope": "private"},
    }
    for result in results.values():
        result["resultType"] = "complete"
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = results.get(request["method"])
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""
"""Without `ping`: an error is an answer."""


@ERAS
async def test_a_program_that_is_stopped_is_told_until_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAST_AGENT_HOME", "")
    monkeypatch.setattr(liveness, "PING", 0.1)
    reports: asyncio.Queue[str] = asyncio.Queue()
    notes = {"command": sys.executable, "args": ["-ISc", SERVER, era], "load_on_start": False}
    data = fastagent_yaml.build(None, None, prefix="passthrough", peers={}, environ={}).data
    with serve.home(data | {"mcp": {"servers": {"notes": notes}}}):
        app = FastAgent("x", parse_cli_args=False, quiet=True)

        @app.agent(name="scout", model="passthrough", servers=["notes"])
        async def scout() -> None: ...

        engine = Engine(
            Loaded(app, "scout"),
            SimpleNamespace(agent=SimpleNamespace(shell=False, functions={})),  # type: ignore[arg-type]
            Conversations(MemoryStore(weigh), weigh),
            choose=list,
            programs=Programs(frozenset({"notes"}), lambda name, reason: reports.put_nowait(reason), timeout=60.0),
            forwarding=Forwarding({}, lambda *_: False, lambda _: False),
        )
        async with engine.running():
            assert await reports.get() == ""
            # after a turn as before the first one
            assert await engine.ask(Question("hello"), None, None, None, elicit=None) == "hello"  # type: ignore[arg-type]
            program = int((tmp_path / "pid").read_text())
            os.kill(program, signal.SIGSTOP)
            try:
                assert await reports.get() == "`notes` runs and has not answered for 0.1 s"
            finally:
                os.kill(program, signal.SIGCONT)
            assert await reports.get() == ""
