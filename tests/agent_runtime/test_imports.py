"""What an agent does not use costs it neither start-up time nor memory, and is there when it is used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agent_runtime.conftest import environment, write_files
from tests.agent_runtime.engine.keyless import CONFIG, SEPARATE
from tests.ports import free_port
from tests.start_report import start_report

UNUSED = {"anthropic", "fastmcp.server.server", "google.genai", "jwt", "openai", "opentelemetry.sdk"}
"""Modules for tokens, traces, human input and the models' own clients; this agent has none of them."""
MOST_BUILT = 100
"""Models of pydantic, of some 800, that are built when an agent is ready: about 60 with fast-agent 0.10.46."""

EVERYTHING = """
import asyncio, json, sys
from pydantic import BaseModel
from pallas_service import deferred_models
deferred_models.defer()
from pallas_agent_runtime import unused_imports
unused_imports.defer()
from fast_agent import FastAgent
from fast_agent.llm.provider_types import Provider
from pallas_agent_runtime.engine.patches import MissingKeys
from pallas_contract.fleet import engine_table

app = FastAgent("all", parse_cli_args=False, quiet=True)
for name in ("one", "two"):
    app.agent(name, "Repeat.", model="passthrough")(lambda: None)
models = {provider: name for name, provider in sorted(engine_table.models().items(), reverse=True)}
providers = [provider.value for provider in Provider if provider.value not in sys.argv[1:]]
for name in providers:
    app.agent(name, "Help.", model=models.get(name, name + ".m"))(lambda: None)
fan_out = dict(fan_out=["one", "two"], fan_in="one")
workflows = {
    "chain": app.chain("chain", sequence=["one", "two"]),
    "parallel": app.parallel("parallel", **fan_out),
    "evaluator": app.evaluator_optimizer("evaluator", generator="one", evaluator="two", max_refinements=1),
    "maker": app.maker("maker", worker="one", k=1, max_samples=1),
    "router": app.router("router", agents=["one", "two"], model="passthrough"),
    "orchestrator": app.orchestrator("orchestrator", agents=["one", "two"], model="passthrough"),
    "planner": app.iterative_planner("planner", agents=["one", "two"], model="passthrough"),
}
for decorate in workflows.values():
    decorate(lambda: None)

async def run():
    keys = MissingKeys()
    answers = {}
    with keys.tolerated():
        async with app.harness() as harness:
            session = await harness.session("all", agent_name="one")
            started = sorted(session.agent_app.registered_agents())
            for name in workflows:
                answers[name] = await session.agent_app[name].send("hello")
    return started, answers

def models_of(base=BaseModel):
    return {base}.union(*map(models_of, base.__subclasses__())) - {BaseModel}

started, answers = asyncio.run(run())
deferred = sum(not model.__pydantic_complete__ for model in models_of())
for model in models_of():
    model.model_rebuild()
broken = sorted(repr(model) for model in models_of() if not model.__pydantic_complete__)
print(json.dumps(dict(started=started, providers=providers, answers=answers, deferred=deferred, broken=broken)))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what an agent had imported and built when it was ready, and what could not be built of all that it may."""
    port = free_port()
    files = {
        "agents.yaml": {"name": "demo", "agents": {"hello": {"card": "hello.md", "port": port}}},
        "fastagent.config.yaml": {"default_model": "passthrough"},
        "hello.md": "---\ntype: agent\nname: hello\n---\nYou repeat.\n",
    }
    folder = write_files(tmp_path_factory.mktemp("project"), files)
    imports = "from pallas_agent_runtime import cli\nfrom pallas_agent_runtime.importing import gc_tuning"
    main = 'cli.main(["--agent", "hello"])'
    return start_report(imports, hook="gc_tuning.as_usual", main=main, folder=folder, env=environment())


@pytest.mark.slow
def test_what_only_others_use_is_not_imported(report: dict[str, Any]) -> None:
    assert UNUSED & set(report["modules"]) == set()


@pytest.mark.slow
def test_models_are_built_by_those_who_use_them(report: dict[str, Any]) -> None:
    assert report["defined"] > 500
    assert report["built"] < MOST_BUILT


@pytest.mark.slow
def test_every_provider_and_workflow_starts_with_models_that_wait(tmp_path: Path) -> None:
    (tmp_path / "fast-agent.yaml").write_text(yaml.safe_dump(CONFIG))
    homes = dict.fromkeys(("HOME", "HF_HOME", "FAST_AGENT_HOME", "CLOUDSDK_CONFIG"), str(tmp_path))
    command = [sys.executable, "-P", "-c", EVERYTHING, *SEPARATE]
    done = subprocess.run(command, cwd=tmp_path, env=environment() | homes, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert set(report["answers"]) | set(report["providers"]) <= set(report["started"])
    assert report["answers"]["chain"] == "hello"
    assert report["deferred"] > 500
    assert report["broken"] == []
