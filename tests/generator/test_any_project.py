"""Any fleet file and any configuration: a plan and all that is rendered from it, or problems with place and reason.

`make fuzz` draws thirty thousand fleets and two thousand configurations; here are a few of them, the same each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, note
from hypothesis import strategies as st

from pallas_contract.problems import Problem, Refused
from pallas_gen.plan import build_plan
from pallas_gen.project import load
from pallas_gen.targets.base import RenderContext
from pallas_gen.targets.table import TARGETS
from tests.examples import hostile
from tests.mutations import documents, texts

pytestmark = pytest.mark.fuzz

FLEET = """
name: my fleet
version: 1.2.3
host: fleet.example.com
namespace: com.example.fleet
registry_port: 24100
public_url: "https://{name}.example.com"
image: {agent: "reg/agent:1", registry: "reg/r:2", code: mounted}
defaults: {env: {A: "1"}, labels: {l: v}, resources: {memory: 512Mi, cpus: 1.0, pids: 100}, publish: 127.0.0.1}
access:
  tokens: {ui: {file: secrets/t1}, a: {file: secrets/t2}}
  jwt: {issuer: "https://id.example.com", jwks_url: "https://id.example.com/k", audience: aud, scopes: [x]}
agents:
  a:
    {module: agents.a, port: 24101, depends_on: [b, model, argos2], title: T, description: "desc",
     env: {K: "v", L: "$x ${y}"}, icons: [{src: "http://x/i.png", sizes: any}], labels: {k: v},
     secrets: {S: {file: secrets/t3}}, access: {forward: [b]}}
  b:
    {card: agents/c.md, port: 24102, depends_on: {c_c: {required: false}}, replicas: 2, instance_scope: request,
     publish: false, egress: true, resources: {memory: 1Gi, cpus: 0.5}}
  c_c: {module: agents.b, port: 24103, keep_conversations: true, access: {tokens: {b: {file: secrets/t3}}}}
services:
  model: {module: standins.model, port: 24110, provides: openai, args: [x, "--y"], env: {Q: "1"}}
  argos2: {module: standins.tools, port: 24111, egress: true, secrets: {S: {file: secrets/t3}}}
registry:
  {probe_interval: 5.0, publish: true, resources: {memory: 256Mi},
   registration: {tokens: {partners: {file: secrets/t1, agents: [x_y]}}, store: true, reach: [10.20.0.0/16]}}
telemetry: {otlp_endpoint: "http://otel:4318", sample: 0.5, content: false}
networks: {mode: isolated, pool: 10.213.0.0/16}
"""
SMALL = """
name: x
agents: {a: {card: agents/c.md, port: 24101, depends_on: [argos]}}
services: {argos: {module: standins.model, port: 24110}}
"""
CONFIG = """
default_model: openai.gpt
model_capabilities: {vision: true, context_window: 1000, max_output_tokens: 10}
mcp:
  servers:
    argos: {url: "http://argos:1/mcp", headers: {a: "${X}"}}
    short: {target: "uvx mcp-server-fetch"}
    o: {transport: stdio, command: z, args: [y], env: {A: b}}
openai: {api_key: "${OPENAI_API_KEY}", base_url: "http://x"}
logger: {level: info}
"""
AGENT = """\
from fast_agent import FastAgent
fast = FastAgent("x")
@fast.agent(name="%s")
async def agent(): ...
"""
SERVICE = 'import os\nADDRESS = os.environ["PALLAS_BIND"]\n'
SECRETS = 'openai: {api_key: "${OPENAI_API_KEY}"}\nmcp: {servers: {argos: {headers: {b: c}}}}\n'
CARD = b"---\ntype: agent\nname: a\nservers: [argos]\nmodel: openai.x\n---\nhello {{x}}\n"
DOTENV = b"OPENAI_API_KEY=x\nexport B='c d'\n# c\nC=\n"
FILES = {
    "agents/__init__.py": "",
    "agents/a.py": AGENT % "a",
    "agents/b.py": AGENT % "c_c",
    "standins/model.py": SERVICE,
    "standins/tools.py": SERVICE,
    "agents/c.md": CARD.decode(),
    **{f"secrets/t{index}": f"{'x' * 32}{index}" for index in (1, 2, 3)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("any")
    folder.chmod(0o755)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def written(document: Any) -> bytes:
    return yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "surrogatepass")


def either(base: str) -> st.SearchStrategy[bytes]:
    """Return a changed document as YAML, and sometimes the text of the original knocked about."""
    return documents(yaml.safe_load(base)).map(written) | texts(base.encode())


def compiled_or_refused(folder: Path) -> None:
    """Compile the project for all targets, or see that each problem has its place and says something."""
    try:
        loaded = load.load(folder / "agents.yaml", {})
        plan = build_plan(loaded.fleet, loaded.config, loaded.project)
        problems = list(loaded.warnings)
        for target in TARGETS:
            refusals = list(target.problems(plan))
            problems += refusals
            if not any(problem.level == "error" for problem in refusals):
                target.render(RenderContext(loaded, plan, folder))
    except Refused as refused:
        problems = refused.problems
        assert any(problem.level == "error" for problem in problems)
    for problem in problems:
        is_a_message(problem)


def is_a_message(problem: Problem) -> None:
    text = str(problem)
    note(text[:500])
    assert problem.where.file
    assert problem.message.strip()
    for slip in ("Traceback", "<class '", "object at 0x", "\x1b", "\0", "defect of pallas-kit"):
        assert slip not in text, text


@hostile(300, fuzz=30_000)
@given(fleet=either(FLEET))
@example(FLEET.replace("  a:\n", "  '[':\n").encode())  # found by `make fuzz`, as those below
@example(
    FLEET.replace("name: my fleet", "name: my fleet\n'[a]': 1").encode()
)  # this and the next ended a registry once
@example(FLEET.replace("port: 24101", "port: '[[[['").encode())
@example(FLEET.replace("otel:4318", "otel:99999").encode())
@example(FLEET.replace("{name}.example.com", "{name}.example.com:99999").encode())
def test_any_fleet(folder: Path, fleet: bytes) -> None:
    for name, text in (("fastagent.config.yaml", CONFIG), ("fastagent.secrets.yaml", SECRETS)):
        (folder / name).write_text(text)
    (folder / "agents.yaml").write_bytes(fleet)
    compiled_or_refused(folder)


@hostile(100, fuzz=2_000)
@given(config=either(CONFIG), secrets=either(SECRETS), dotenv=texts(DOTENV), card=texts(CARD))
@example(CONFIG.replace('"http://argos:1/mcp"', "8").encode(), b"", DOTENV, CARD)
@example(f"mcp: {{servers: {{argos: {{command: z, args: [y.{'y' * 300}]}}}}}}".encode(), b"", DOTENV, CARD)
def test_any_configuration(folder: Path, config: bytes, secrets: bytes, dotenv: bytes, card: bytes) -> None:
    (folder / "agents.yaml").write_text(SMALL)
    files = {"fastagent.config.yaml": config, "fastagent.secrets.yaml": secrets, ".env": dotenv, "agents/c.md": card}
    for name, text in files.items():
        (folder / name).write_bytes(text)
    compiled_or_refused(folder)


def test_the_originals_are_right(folder: Path) -> None:
    """Else every example would be refused for the same mistake."""
    for name, text in (("fastagent.config.yaml", CONFIG), ("fastagent.secrets.yaml", SECRETS), ("agents.yaml", FLEET)):
        (folder / name).write_text(text)
    (folder / "agents/c.md").write_bytes(CARD)
    (folder / ".env").unlink(missing_ok=True)
    load.load(folder / "agents.yaml", {})
