"""The files of a first project: two agents, a tool that is a function, and a model that follows a script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

AGENT = "desk"
MESSAGE = "How many words are these?"
"""The agent to ask first, and what to ask it."""

_AGENTS_YAML = """\
# Who there is, and who calls whom: `pallas up` runs it as processes, `pallas-gen` writes it for Docker and Kubernetes.
name: {name}
registry_port: 24200

agents:
  desk:
    module: agents.desk
    port: 24201
    description: Counts words, and has the clerk note them
    depends_on: [clerk, model]

  clerk:
    card: agents/clerk.md
    port: 24202
    description: Notes what it is told
    depends_on: [model]

services:
  # Stands in for a model provider: it answers by standins/model.yaml and needs no key. With a real `default_model` in
  # fastagent.config.yaml take it away, here and in `depends_on`.
  model:
    module: standins.model
    port: 24210
    provides: openai
"""

_CONFIG = """\
# fast-agent's own configuration. A real model is written `openai.gpt-4.1`; its key belongs into `.env`.
default_model: openai.scripted

openai:
  api_key: "${OPENAI_API_KEY:no-key-needed}"
"""

_DESK = '''\
"""The desk: an agent with a tool that is a function, and a colleague to ask."""

from fast_agent import FastAgent

fast = FastAgent("desk")


def count_words(text: str) -> str:
    """Count the words of a text."""
    count = len(text.split())
    return f"{count} word{'' if count == 1 else 's'}"


@fast.agent(
    name="desk",
    instruction="You are the desk. Count the words of what people write, and have the clerk note it.",
    servers=["clerk"],
    function_tools=[count_words],
)
async def desk() -> None: ...
'''

_CLERK = """\
---
type: agent
name: clerk
---
You are the clerk. Note in one line what you are told.
"""

_MODEL = '''\
"""The model: the kit's scripted model, which answers by model.yaml."""

import os
import sys
from pathlib import Path

from pallas_testing.model import serve

if __name__ == "__main__":
    sys.exit(serve(Path(__file__).with_name("model.yaml"), os.environ["PALLAS_BIND"]))
'''

_SCRIPT = """\
# What the stand-in for a model answers: an agent is known by its instruction, and its first rule that fits is taken.
strict: false

agents:
  desk:
    instruction: You are the desk
    rules:
      - results: false
        call:
          - {tool: count_words, arguments: {text: "{user}"}, if_missing: skip}
          - {tool: clerk__clerk, arguments: {message: "{user}"}, if_missing: skip}
      - say: |-
          The desk has asked its tools.
          {results}

  clerk:
    instruction: You are the clerk
    rules:
      - say: 'Noted: "{user}"'
"""

_TEST = '''\
"""The fleet, started and asked: `pip install 'pallas-kit[local,testing]'`, then `python -m pytest`."""


def test_the_desk_counts_words_and_has_them_noted(fleet):
    answer = fleet.agent("desk").ask("one two three")
    assert "3 words" in answer.text
    assert 'Noted: "one two three"' in answer.text
    assert answer.delegated("desk -> clerk")


def test_every_agent_is_well(fleet):
    assert {fleet.registry.state(name).status for name in fleet.agents} == {"ok"}
'''

_WORKFLOW = """\
name: fleet
on: [push, pull_request]
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - uses: actions/setup-python@v7
        with: {python-version: "3.13"}
      - run: pip install 'pallas-kit[local,testing]'
      - run: pallas-gen validate
      - run: python -m pytest
"""

_ENV_EXAMPLE = """\
# Copy this to .env and fill it in. `.env` stays out of version control; the fleet reads it on every target.
# Only a real model needs a key.
OPENAI_API_KEY=
"""

_GITIGNORE = """\
# secrets
.env
fastagent.secrets.yaml
secrets/
# what `pallas` keeps here
.pallas/
# Python
__pycache__/
.pytest_cache/
.venv/
"""


def files(name: str) -> Mapping[PurePosixPath, str]:
    """Return the files of a fleet called `name`, by path in the project folder."""
    return {
        PurePosixPath("agents.yaml"): _AGENTS_YAML.replace("{name}", name),
        PurePosixPath("fastagent.config.yaml"): _CONFIG,
        PurePosixPath("agents/desk.py"): _DESK,
        PurePosixPath("agents/clerk.md"): _CLERK,
        PurePosixPath("standins/model.py"): _MODEL,
        PurePosixPath("standins/model.yaml"): _SCRIPT,
        PurePosixPath("tests/test_fleet.py"): _TEST,
    }


def beside() -> Mapping[PurePosixPath, str]:
    """Return what any project has besides its fleet: a workflow for GitHub, an example of `.env`, `.gitignore`."""
    return {
        PurePosixPath(".github/workflows/fleet.yaml"): _WORKFLOW,
        PurePosixPath(".env.example"): _ENV_EXAMPLE,
        PurePosixPath(".gitignore"): _GITIGNORE,
    }
