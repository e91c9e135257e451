"""Agents, registry and gateway in containers, before judges that we did not write.

They are the official conformance suite in both eras, as far as it applies to them, and the MCP Inspector, the client
that most people try a server with first.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pallas_testing.conformance import run
from pallas_testing.conformance.evidence import Turn
from pallas_testing.conformance.run import Kind, Question
from pallas_testing.conformance.session import ERAS
from pallas_testing.fleet import Fleet
from pallas_testing.fleet.start import Running

from . import decisions, suite
from .projects import edited
from .stack import running

pytestmark = [pytest.mark.docker, pytest.mark.conformance, pytest.mark.beside]

HERE = Path(__file__).parent / "conformance"
AGENT = "test_error_handling"
MEMBERS = {"agent": AGENT, "stateless": "stateless", "registry": "registry"}
THROUGH = "through"
"""The agent, called through the gateway."""
Inspect = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def running_fleet(tmp_path_factory) -> Iterator[Running]:
    """The project in conformance/fleet, up for all tests here."""
    with running(edited(HERE / "fleet", tmp_path_factory.mktemp("conformance"))) as fleet:
        yield fleet


@pytest.mark.parametrize("server", decisions.SERVERS)
def test_the_suite_finds_what_is_decided_and_nothing_else(fleet: Fleet, server: decisions.Server, tmp_path) -> None:
    found = suite.run(endpoint(fleet, MEMBERS.get(server, server)), tmp_path)
    assert decisions.problems(decisions.load(), server, found) == []


def test_the_suite_finds_nothing_else_of_an_agent_through_the_gateway(fleet: Fleet, tmp_path) -> None:
    found = suite.run(endpoint(fleet, THROUGH), tmp_path)
    assert decisions.problems(decisions.load(), "agent", found) == []


def endpoint(fleet: Fleet, member: str) -> str:
    """Return the URL at which a member speaks MCP."""
    if member == THROUGH:
        return f"{fleet.url('gateway')}/agents/{AGENT.replace('_', '-')}/mcp"
    return f"{fleet.url(member)}/mcp"


@pytest.mark.parametrize("member", MEMBERS.values())
async def test_each_keeps_the_pallas_contract(fleet: Fleet, member: str) -> None:
    kind: Kind = "registry" if member == "registry" else "agent"
    turn = Turn("good morning", "good morning")
    timeless = lambda: 0.0  # noqa: E731 - how fast a machine is today is not theirs to answer for
    path = "" if kind == "registry" else "/mcp"
    report = await run.check(Question(fleet.url(member) + path, eras=ERAS, turn=turn), clock=timeless)
    assert (report.kind, report.of("broken")) == (kind, [])
    unasked = {finding.id: finding.remark for finding in report.of("not asked")}
    history = {"history.prompt", "history.content"} if member == "stateless" else set()
    assert unasked.keys() == ({"health.no-model"} | history if kind == "agent" else set()), unasked


@pytest.fixture(params=["legacy", "modern"])
def inspect(request: pytest.FixtureRequest, fleet: Fleet, tmp_path: Path) -> Inspect:
    """`inspect(member, method, *options)`: the result that the Inspector prints; it fails where the Inspector does."""

    def run(member: str, method: str, *options: str) -> dict[str, Any]:
        url = endpoint(fleet, member)
        era = ["--transport", "http", "--protocol-era", request.param]
        called = [*suite.command("inspector"), "--cli", url, *era, "--method", method, *options, "--format", "json"]
        home = {"HOME": str(tmp_path), **suite.environment()}  # where it would keep what it was asked
        done = subprocess.run(called, check=False, capture_output=True, text=True, timeout=300, env=home)
        assert done.returncode == 0, done.stdout + done.stderr
        result: dict[str, Any] = json.loads(done.stdout)["result"]
        # it says nothing of the era; only the current one names the server in each result of a call
        assert method not in ("tools/call", "prompts/get") or ("_meta" in result) is (request.param == "modern")
        return result

    return run


def test_the_inspector_uses_an_agent(inspect: Inspect) -> None:
    tools = inspect(AGENT, "tools/list", "--strict")["tools"]  # schemas that some client stumbles over are an error
    assert [tool["name"] for tool in tools] == ["send_message", AGENT, "get_health"]

    health = inspect(AGENT, "tools/call", "--tool-name", "get_health")
    assert json.loads(health["content"][0]["text"]) == health["structuredContent"]
    assert health["structuredContent"]["status"] == "ok"

    words = ["--tool-arg", "message=good morning", "session_id=inspected"]
    answer = inspect(AGENT, "tools/call", "--tool-name", "send_message", *words)
    assert (answer["isError"], answer["content"][0]["text"]) == (False, "good morning")

    (prompt,) = inspect(AGENT, "prompts/list")["prompts"]
    assert prompt["name"] == f"{AGENT}_history"
    asked = ["--prompt-name", prompt["name"], "--prompt-args", "session_id=inspected"]
    history = [(each["role"], each["content"]["text"]) for each in inspect(AGENT, "prompts/get", *asked)["messages"]]
    assert history[-2:] == [("user", "good morning"), ("assistant", "good morning")]


def test_the_inspector_uses_an_agent_through_the_gateway(inspect: Inspect) -> None:
    tools = inspect(THROUGH, "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in tools] == ["send_message", AGENT, "get_health"]
    answer = inspect(THROUGH, "tools/call", "--tool-name", "send_message", "--tool-arg", "message=good morning")
    assert (answer["isError"], answer["content"][0]["text"]) == (False, "good morning")


def test_the_inspector_reads_what_pallas_gen_prints_for_it(fleet: Fleet, tmp_path: Path) -> None:
    """By its own file, as by any other client's: the agents of the registry, with their addresses."""
    asked = [sys.executable, "-P", "-m", "pallas_gen", "clients", "inspector", "--registry", fleet.url("registry")]
    file = tmp_path / "inspector.json"
    file.write_text(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
    server = AGENT.replace("_", "-")
    words = ["--cli", "--config", str(file), "--server", server, "--method", "tools/list", "--format", "json"]
    called = [*suite.command("inspector"), *words]
    home = {"HOME": str(tmp_path), **suite.environment()}
    done = subprocess.run(called, check=False, capture_output=True, text=True, timeout=300, env=home)
    assert done.returncode == 0, done.stdout + done.stderr
    tools = json.loads(done.stdout)["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["send_message", AGENT, "get_health"]


def test_the_inspector_uses_the_registry(inspect: Inspect) -> None:
    tools = inspect("registry", "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in tools] == ["find_agent", "get_health", "list_agents"]
    said = inspect("registry", "tools/call", "--tool-name", "find_agent", "--tool-arg", "query=stateless")
    assert [agent["name"] for agent in said["structuredContent"]["agents"]] == ["stateless"]
