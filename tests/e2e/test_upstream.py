"""Three of fast-agent's own examples in containers, as its package brings them, with a scripted model beside them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import fast_agent
import pytest

import pallas_testing
from pallas_contract import __version__
from pallas_testing.fleet import Fleet
from pallas_testing.fleet.start import Running
from tests.agent_runtime.upstream import script

from .stack import running

pytestmark = pytest.mark.docker

WORKFLOWS = Path(fast_agent.__file__).parent / "resources" / "examples" / "workflows"
FLEET = """\
name: upstream
image: {{agent: "pallas-agent:{version}"}}
defaults: {{env: {{FAST_AGENT_MODEL: openai.gpt-4.1, ANTHROPIC_BASE_URL: "http://model:8080"}}}}
agents:
  post_writer: {{module: chaining, port: 24801, depends_on: [model]}}
  route: {{module: router, port: 24802, depends_on: [model]}}
  pmo: {{module: agents_as_tools_simple, port: 24803, depends_on: [model]}}
services:
  model: {{module: standin, port: 24804, provides: openai}}
"""
"""Its own image is named, the kit's: none is built for the servers (`uvx`, `npx`) that the examples have."""
STANDIN = """\
import os
import threading

import script
from pallas_testing.model import ScriptedModel, serving

host, _, port = os.environ["PALLAS_BIND"].rpartition(":")
with serving(ScriptedModel(function=script.answer), host, int(port)):
    threading.Event().wait()
"""
EXPECTED = {"post_writer": "degraded", "route": "degraded", "pmo": "degraded"}
"""They have servers that this image has not."""
QUESTION = "Review the code, please."


@pytest.fixture(scope="module")
def running_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    project = shutil.copytree(WORKFLOWS, tmp_path_factory.mktemp("upstream") / "workflows")
    config = project / "agents.yaml"
    config.write_text(FLEET.format(version=__version__))
    shutil.copy(script.__file__, project)
    shutil.copytree(Path(pallas_testing.__file__).parent, project / "pallas_testing")  # the kit's image is without it
    (project / "standin.py").write_text(STANDIN)
    keys = "openai: {api_key: '${OPENAI_API_KEY}'}\nanthropic: {api_key: '${ANTHROPIC_API_KEY}'}\n"
    (project / "fast-agent.secrets.yaml").write_text(keys)
    (project / ".env").write_text("OPENAI_API_KEY=sk-openai\nANTHROPIC_API_KEY=sk-anthropic\n")
    with running(config, EXPECTED) as fleet:
        yield fleet


@pytest.mark.parametrize(
    ("agent", "answer"),
    [
        ("post_writer", f"<gpt-4.1 Write a 280 character>: <gpt-4.1 Given a URL, provide>: {QUESTION}"),
        ("route", f"<claude-haiku-5-5 You are an expert>: {QUESTION}"),
        ("pmo", f"<gpt-4.1 Return London time +>: {QUESTION}"),
    ],
)
def test_an_example_answers_through_its_published_port(fleet: Fleet, agent: str, answer: str) -> None:
    """A chain, a router and an agent with agents as tools; the model is offered no tool of the missing servers."""
    assert answer in fleet.agent(agent).ask(QUESTION).text


def test_the_files_are_those_of_the_package(fleet: Fleet) -> None:
    for name in ("chaining", "router", "agents_as_tools_simple"):
        assert (fleet.folder / f"{name}.py").read_bytes() == (WORKFLOWS / f"{name}.py").read_bytes()
