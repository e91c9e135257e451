"""A server that the agent starts itself and that needs longer than any turn would wait: started once, and kept."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.waits]

LATE = 12
"""Seconds: over the 10 after which fast-agent by itself, and the SDK's first question to a program, give up."""

SLOW = """
import json, pathlib, sys, time

folder = pathlib.Path(sys.argv[1])
with (folder / "starts").open("a") as starts:
    starts.write("started\\n")
if sys.argv[2:]:
    time.sleep(float(sys.argv[2]))
else:
    while not (folder / "go").exists():
        time.sleep(0.05)

TOOL = {"name": "search", "description": "x", "inputSchema": {"type": "object", "properties": {"message": {}}}}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    params = request.get("params", {})
    results = {
        "initialize": lambda: {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "slow", "version": "1"},
        },
        "tools/list": lambda: {"tools": [TOOL]},
        "tools/call": lambda: {"content": [{"type": "text", "text": f"found {params['arguments']['message']}"}]},
    }
    if request["method"] in results:
        answer = {"result": results[request["method"]]()}
    else:
        answer = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""
"""A server by hand, of the handshake era, that starts after so many seconds or once it is told: it imports nothing that
would take longer on a busy machine.
"""


async def ask(agents: Any, message: str, agent: str = "scout") -> str:
    async with Client(agents.url(agent)) as client:
        result = await client.call_tool(agent, {"message": message})
    (block,) = result.content
    text: str = block.text
    return text


async def test_a_program_that_no_turn_waits_for_is_started_once_and_kept(
    toolkit: Any, parts: Any, tmp_path: Any
) -> None:
    """One waits for a file, so that the turns before it is there do not depend on how fast the machine is.

    The other needs its seconds meanwhile.
    """
    programs = {
        "slow": {"command": sys.executable, "args": ["slow.py", "."]},
        "late": {"command": sys.executable, "args": ["slow.py", "late", str(LATE)]},
    }
    files = {
        "agents.yaml": {
            "name": "s",
            "registry_port": toolkit.free_port(),
            "agents": {name: {"card": f"{name}.md", "port": toolkit.free_port()} for name in ("scout", "patient")},
        },
        "scout.md": "---\ntype: agent\nname: scout\nservers: [slow]\n---\nYou are Scout.\n",
        "patient.md": "---\ntype: agent\nname: patient\nservers: [late]\n---\nYou are Patient.\n",
        "slow.py": SLOW,
        "late/.keep": "",
        "fastagent.config.yaml": {"default_model": "openai.m", "mcp": {"servers": programs}},
    }
    with ExitStack() as stack:
        model = stack.enter_context(parts.modelling(toolkit))
        files[".env"] = f"OPENAI_API_KEY=sk-x\nOPENAI_BASE_URL={model.url}\n"
        folder = toolkit.write_files(tmp_path, files)
        agents = stack.enter_context(toolkit.running(folder, "scout", "patient", PALLAS_CONNECT_TIMEOUT="5"))

        async def until(condition: Callable[[dict[str, Any]], bool], agent: str = "scout") -> dict[str, Any]:
            def page() -> dict[str, Any] | None:
                answer: dict[str, Any] = json.loads(agents.get(agent, "/healthz")[1])
                return answer if condition(answer) else None

            answer: dict[str, Any] = await asyncio.to_thread(toolkit.until, page)
            return answer

        page = await until(lambda page: "slow" in page["downstream"])
        assert page["status"] == "degraded"
        assert page["message"].split("; ")[0] == "Unreachable: slow"  # a busy machine may say more, of its model
        assert page["downstream"]["slow"]["reason"] == "not started yet"
        for _ in range(2):
            assert (await ask(agents, "use slow__search x")).startswith("got Tool 'slow__search' is not available.")
        (tmp_path / "go").touch()
        await until(lambda page: page["status"] == "ok")
        for _ in range(2):
            assert await ask(agents, "use slow__search x") == "got found x"
        assert (tmp_path / "starts").read_text() == "started\n"
        assert agents.end("scout") == 0
        await until(lambda page: page["status"] == "ok", "patient")
        assert await ask(agents, "use late__search x", "patient") == "got found x"
        assert (tmp_path / "late" / "starts").read_text() == "started\n"
        assert agents.end("patient") == 0
