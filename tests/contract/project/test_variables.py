"""Variables that fast-agent's files ask for and nothing sets."""

from __future__ import annotations

from pathlib import Path

from pallas_contract.fleet import fastagent
from pallas_contract.project import variables
from pallas_contract.validate import load
from tests.problem_lines import without_codes

AGENTS = """\
name: x
defaults: {env: {A: "1"}, secrets: {B: {file: b.txt}}}
agents:
  scout: {module: scout, port: 8101, env: {C: "1"}, secrets: {D: {file: d.txt}}}
"""
CONFIG = """\
default_model: openai.gpt-4.1
openai: {api_key: "${KEY}", base_url: "${OPENAI_BASE_URL}"}
logger: {path: "${A}${B}${C}${D}${GIVEN}${OTHER:default}"}
"""


def test_each_that_nothing_sets_is_named_once_at_its_first_place(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    (tmp_path / "fastagent.config.yaml").write_text(CONFIG)
    (tmp_path / "fastagent.secrets.yaml").write_text('anthropic: {api_key: "${GONE}"}\n')
    fleet, _, _ = load.load(tmp_path / "agents.yaml")
    config, _ = fastagent.load(tmp_path)
    problems = [without_codes(str(problem)) for problem in variables.unset(fleet, config, {"GIVEN"})]
    assert problems == [
        "warning: fastagent.config.yaml:2:10 openai.api_key: ${KEY} is not set anywhere\n"
        "    put KEY=... into .env, or give a default: ${KEY:default}",
        "warning: fastagent.secrets.yaml:1:13 anthropic.api_key: ${GONE} is not set anywhere\n"
        "    put GONE=... into .env, or give a default: ${GONE:default}",
    ]
