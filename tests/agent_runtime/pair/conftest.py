"""Two real agents, one calling the other, and a stand-in for their model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

HARPER = """
from fast_agent import FastAgent

fast = FastAgent("Harper")  # parses argv by default: the runtime must cope


@fast.agent(name="main", instruction="You are Harper.", servers=["tech_research"])
async def main() -> None: ...
"""
CARD = "type: agent\nname: tech_research\ninstruction: You research.\nfunction_tools: [figures.py:trend]\n"
FIGURES = """
def trend(opened: float, closed: float) -> str:
    \"\"\"Say by which part a price has grown.\"\"\"
    return f"{closed / opened - 1:.2f}"
"""


@pytest.fixture(scope="package")
def model(toolkit: Any) -> Iterator[Any]:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        text = toolkit.said(last)
        if last["role"] == "tool":
            return {"content": f"It said: {text}"}
        if text.startswith("delegate "):
            message = text.removeprefix("delegate ")
            return toolkit.tool_call("tech_research__tech_research", "Let me look into that...", message=message)
        return {"content": text}

    stand_in = toolkit.Model(answer, models=["local-vision"])
    yield from toolkit.serve_model(stand_in)


@pytest.fixture(scope="package")
def fleet(model: Any, toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    ports = [toolkit.free_port() for _ in range(3)]
    folder = toolkit.write_files(
        tmp_path_factory.mktemp("fleet"),
        {
            "agents.yaml": {
                "name": "demo",
                "version": "1.2.3",
                "namespace": "com.example.demo",
                "registry_port": ports[0],
                "agents": {
                    "harper": {
                        "module": "agents.harper",
                        "port": ports[1],
                        "title": "Harper the Great",
                        "description": "Orchestrates",
                        "depends_on": ["tech_research"],
                    },
                    "tech_research": {
                        "card": "agents/tech.yaml",
                        "port": ports[2],
                        "instance_scope": "request",
                        "functions": ["trend"],
                    },
                },
            },
            "agents/__init__.py": "",
            "agents/harper.py": HARPER,
            "agents/tech.yaml": CARD,
            "agents/figures.py": FIGURES,
            "fastagent.config.yaml": {
                "default_model": "openai.local-vision",
                "model_capabilities": {"vision": True, "context_window": 65536},
                "llm_retries": 0,
                "mcp": {"servers": {"tech_research": {"url": "http://127.0.0.1:1/mcp"}}},
            },
            "fastagent.secrets.yaml": "openai:\n  api_key: ${OPENAI_API_KEY}\n  base_url: ${OPENAI_BASE_URL}\n",
            ".env": f"OPENAI_API_KEY=sk-from-dotenv\nOPENAI_BASE_URL={model.url}\n",
        },
    )
    with toolkit.running(folder, "tech_research", "harper", one_by_one=True) as started:
        yield started
