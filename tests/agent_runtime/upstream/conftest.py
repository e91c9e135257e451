"""fast-agent's own examples, as its package brings them: one project per folder of them, one process per agent."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fast_agent
import pytest

from pallas_testing.model import ScriptedModel, serving
from tests.agent_runtime.upstream import script

RESOURCES = Path(fast_agent.__file__).parent / "resources"
SEVERAL = "several"
PROGRAM = f"{__package__}.{SEVERAL}"
CLIENTS = (
    "fast_agent.llm.provider.anthropic.llm_anthropic",
    "fast_agent.llm.provider.openai.responses",
    "fast_agent.llm.provider.openai.llm_huggingface",
)
"""What the models of the examples are asked by, besides what every agent here imports."""
PROJECTS: dict[str, dict[str, dict[str, Any]]] = {
    "examples/workflows": {
        "post_writer": {"module": "chaining"},
        "parallel": {"module": "parallel"},
        "route": {"module": "router"},
        "cover_letter_writer": {"module": "evaluator"},
        "orchestrate": {"module": "orchestrator"},
        "reliable_classifier": {"module": "maker"},
        "pmo": {"module": "agents_as_tools_simple"},
        "pmo_news": {"module": "agents_as_tools_extended"},
        "asking": {"module": "human_input"},
    },
    "examples/researcher": {
        "researcher": {"module": "researcher"},
        "researcher_evaluator": {"module": "researcher-eval"},
        "enhancedresearcher": {"module": "researcher-imp"},
    },
    "examples/data-analysis": {
        "data_analysis": {"module": "analysis"},
        "research_campaign_creator": {"module": "analysis-campaign"},
    },
    "examples/mcp/elicitations": {
        "sandbox": {"module": "sandbox_demo"},
        "sandbox_custom": {"module": "custom_handler_demo"},
        "url_demo": {"module": "url_demo"},
    },
    "examples/tensorzero": {"tensorzero": {"module": "agent"}},
    "examples/hf-toad-cards": {
        "ripgrep_search": {"card": "tool-cards/ripgrep-search.md"},
        "mcp_expert": {"card": "agent-cards/mcp-expert.md"},
        "acp_expert": {"card": "agent-cards/acp-expert.md"},
    },
    "setup": {"example": {"module": "agent"}},
}


@dataclass
class Examples:
    """The running examples: `agents` knows of each agent the project it runs in."""

    model: ScriptedModel
    agents: dict[str, Any]

    def url(self, name: str) -> str:
        return str(self.agents[name].url(name))


@pytest.fixture(scope="package")
def examples(toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examples]:
    folder = tmp_path_factory.mktemp("upstream")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("uvx", "npx", "uv", "docker"):
        program = programs / name
        program.write_text(f"#!{sys.executable} -IS\n" + Path(__file__).with_name("stdio_server.py").read_text())
        program.chmod(0o755)
    with (
        serving(ScriptedModel(function=script.answer)) as model,
        contextlib.closing(toolkit.parent_of(PROGRAM, CLIENTS)) as parent,
        ExitStack() as stack,
    ):
        agents = {}
        for path, definitions in PROJECTS.items():
            project = shutil.copytree(RESOURCES / path, folder / path.replace("/", "-"))
            if (project / "shared").is_dir():  # where fast-agent's own set-up puts it, and the cards look for it
                shutil.copytree(project / "shared", project / ".fast-agent" / "shared")
            written = {name: {"port": toolkit.free_port(), **entry} for name, entry in definitions.items()}
            fleet = {"name": "upstream", "registry_port": toolkit.free_port(), "agents": written}
            files = {"agents.yaml": fleet}
            if not (project / "fast-agent.yaml").exists():  # no variable leads to a model of Hugging Face's
                files["fast-agent.yaml"] = {"hf": {"base_url": f"{model.url}/v1", "api_key": "${HF_TOKEN}"}}
            toolkit.write_files(project, files)
            environ = {
                **model.environ(),
                "HF_TOKEN": "hf-x",
                "FAST_AGENT_MODEL": "openai.gpt-4.1",
                "PATH": f"{programs}:/usr/bin:/bin",
            }
            started = stack.enter_context(contextlib.closing(toolkit.Agents(project, environ, parent)))
            started.start(SEVERAL)
            for name in definitions:
                started.running[name] = started.running[SEVERAL]
                agents[name] = started
            started.wait(*definitions)
        yield Examples(model, agents)
