"""fast-agent's own examples, unmodified: which of their agents asked which model for what, and what came of it."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.agent_runtime.upstream.conftest import RESOURCES

pytestmark = [pytest.mark.slow, pytest.mark.beside]

GPT = "gpt-4.1"
SONNET = "claude-sonnet-5-5"
HAIKU = "claude-haiku-5-5"


@dataclass(frozen=True)
class Row:
    """An agent, what its answer has in it, who asked the model, and progress that its caller saw."""

    agent: str
    answer: str
    asked: frozenset[tuple[str, str, str]]
    """Model, first words of the instruction, and tools, of each request; those that were the same once."""
    progress: tuple[str, ...] = ()


def row(agent: str, answer: str, *asked: tuple[str, str, str], progress: tuple[str, ...] = ()) -> Row:
    return Row(agent, answer, frozenset(asked), progress)


RESEARCH = "brave__look fetch__look filesystem__look interpreter__look"
PMO = "agent__London-Project-Manager agent__NY-Project-Manager"
ROWS = [
    row(
        "post_writer",
        f"<{GPT} Write a 280 character>: <{GPT} Given a URL, provide>: uvx mcp-server-fetch found it",
        (GPT, "Given a URL, provide", "fetch__look"),
        (GPT, "Write a 280 character", ""),
        progress=("fetch/look: started", "fetch/look: completed", "social_media step 1 (llm)"),
    ),
    row(
        "parallel",
        f"<{SONNET} Analyze the story for>: Review the code, please.",
        (GPT, '"Review the short story', ""),
        (GPT, "Verify the factual consistency", ""),
        (SONNET, "Analyze the story for", ""),
        (GPT, "Compile the feedback from", ""),
        progress=("proofreader step 1 (llm)", "style_enforcer step 1 (llm)", "grader step 1 (llm)"),
    ),
    row(
        "route",
        f"<{HAIKU} You are an expert>: npx -y @modelcontextprotocol/server-filesystem . found it",
        (SONNET, "You are a highly", ""),
        (HAIKU, "You are an expert", "filesystem__look"),
        progress=("filesystem/look: completed",),
    ),
    row(
        "cover_letter_writer",
        "<gpt-5-nano You are a career>: This is better.",
        ("gpt-5-nano", "You are a career", "fetch__look"),
        ("o3-mini", "Evaluate the following response", ""),
        progress=("generator step 1 (llm)", "fetch/look: completed"),
    ),
    row(
        "orchestrate",
        "stopped because Plan completed successfully",
        (SONNET, "You are an expert", ""),
        (GPT, "You are an agent", "fetch__look filesystem__look"),
        progress=(
            *(f"orchestrate step {number} (llm)" for number in (1, 2, 3)),
            "finder step 1 (llm)",
            "fetch/look: completed",
            "filesystem/look: completed",
        ),
    ),
    row(
        "reliable_classifier",
        "COMPLAINT",
        ("claude-haiku-4-5", "You are a customer", ""),
        progress=("classifier step 1 (llm)",) * 3,
    ),
    row(
        "pmo",
        f"<{GPT} Return London time +>: uvx mcp-server-time found it",
        (GPT, "Get reports. Always use", PMO),
        (GPT, "Return NY time +", "time__look"),
        (GPT, "Return London time +", "time__look"),
        progress=(
            "pmo step 1 (llm)",
            "agent/NY-Project-Manager[1]: started",
            "agent/London-Project-Manager[2]: started",
        ),
    ),
    row(
        "pmo_news",
        f"<{GPT} You are a London>: uvx mcp-server-time found it",
        (GPT, "Get project updates from", PMO),
        (GPT, "You are a New", "fetch__look time__look"),
        (GPT, "You are a London", "fetch__look time__look"),
        progress=("agent/London-Project-Manager[2]: started", "time/look: completed"),
    ),
    row(
        "researcher",
        "docker run -i --rm --pull=always -v ./agent_folder:/mnt/data/ ghcr.io/evalstate/mcp-py-repl:latest found it",
        (GPT, "You are a research", RESEARCH),
        progress=("brave/look: started", "interpreter/look: completed"),
    ),
    row(
        "researcher_evaluator",
        f"<{GPT} You are a research>: This is better.",
        (GPT, "You are a research", RESEARCH),
        (SONNET, "Evaluate the response from", ""),
    ),
    row(
        "enhancedresearcher",
        f"<{GPT} You are a meticulous>: ",
        (SONNET, "You are a strategic", "brave__look"),
        (SONNET, "You are an expert", RESEARCH),
        (GPT, "You are a meticulous", "brave__look fetch__look"),
        (SONNET, "You are a senior", ""),
        progress=("ResearchPlanner step 1 (llm)", "FactChecker step 1 (llm)"),
    ),
    row(
        "data_analysis",
        "docker run -i --rm --pull=always -v ./mount-point:/mnt/data/ ghcr.io/evalstate/mcp-py-repl:latest found it",
        (SONNET, "You have access to", "interpreter__look"),
    ),
    row(
        "research_campaign_creator",
        "stopped because Plan completed successfully",
        (SONNET, "Create a complete multi-lingual", ""),
        (GPT, "You are a research", "brave__look fetch__look"),
        progress=("context_researcher step 1 (llm)", "brave/look: completed"),
    ),
    row("tensorzero", f"<{HAIKU} You are an agent>: Review the code, please.", (HAIKU, "You are an agent", "")),
    row("ripgrep_search", f"<{GPT} You are a structured>: ", (GPT, "You are a structured", "")),
    row("mcp_expert", "Review the code, please.", ("openai/gpt-oss-120b:cerebras", "# MCP Expert You", "")),
    row("acp_expert", "Review the code, please.", ("openai/gpt-oss-120b:cerebras", "# ACP Expert You", "")),
    row("example", f"<{GPT} You are a helpful>: Review the code, please.", (GPT, "You are a helpful", "")),
]


@pytest.mark.parametrize("expected", ROWS, ids=lambda row: row.agent)
async def test_an_example_runs_as_it_is(examples: Any, expected: Row) -> None:
    lines: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message or "")

    examples.model.requests.clear()
    async with Client(examples.url(expected.agent)) as client:
        arguments = {"message": "Review the code, please."}
        result = await client.call_tool("send_message", arguments, progress_callback=report)
    answer = result.content[0].text
    requests = examples.model.requests
    assert (result.is_error, expected.answer in answer) == (False, True), answer
    assert {
        (request.model, " ".join(request.instruction.split()[:4]), " ".join(sorted(request.tools)))
        for request in requests
    } == expected.asked
    for line in expected.progress:
        assert lines.count(line) >= expected.progress.count(line), lines


@pytest.mark.parametrize(
    ("agent", "api"), [("cover_letter_writer", "responses"), ("example", "chat"), ("tensorzero", "messages")]
)
async def test_each_api_of_the_scripted_model_has_a_real_client_here(examples: Any, agent: str, api: str) -> None:
    examples.model.requests.clear()
    async with Client(examples.url(agent)) as client:
        await client.call_tool("send_message", {"message": "Review the code, please."})
    assert {request.api for request in examples.model.requests} == {api}


async def test_the_files_of_the_examples_have_what_they_ask_for(examples: Any) -> None:
    """`{{env}}` and the like, in the instruction that `fast-agent setup` writes."""
    examples.model.requests.clear()
    async with Client(examples.url("example")) as client:
        await client.call_tool("send_message", {"message": "Review the code, please."})
    systems = [request.instruction for request in examples.model.requests if "helpful AI Agent" in request.instruction]
    assert systems
    assert not any("{{" in system for system in systems)
    assert all("The current date is" in system and "Environment:" in system for system in systems)


def test_cards_whose_shared_files_are_missing_are_refused(toolkit: Any, warm_parent: Any, tmp_path: Path) -> None:
    """They look for them in `.fast-agent`, which is made by fast-agent's own set-up."""
    project = shutil.copytree(RESOURCES / "examples/hf-toad-cards", tmp_path / "cards")
    entry = {"card": "agent-cards/mcp-expert.md", "port": toolkit.free_port()}
    fleet = {"name": "upstream", "registry_port": toolkit.free_port(), "agents": {"mcp_expert": entry}}
    toolkit.write_files(project, {"agents.yaml": fleet})
    with contextlib.closing(toolkit.Agents(project, {"HF_TOKEN": "hf-x"}, warm_parent)) as agents:
        agents.start("mcp_expert")
        assert agents.running["mcp_expert"].wait() == 2
        log = agents.log("mcp_expert").read_text()
    missing = "there is no file .fast-agent/shared/shell-instructions.md, which its instruction includes"
    assert f"agent-cards/mcp-expert.md:33:1: {missing}: the agent does not start" in log
    assert "Traceback" not in log
