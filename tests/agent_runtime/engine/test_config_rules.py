"""The rules over fast-agent's configuration against fast-agent itself: what they refuse, it refuses too."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from fast_agent.config import Settings
from pydantic import ValidationError

from pallas_contract.fleet import source
from pallas_contract.validate import config_rules
from tests.problem_lines import without_codes

REFUSED = {
    "mcp: {servers: {a: {transport: htp}}}": "mcp.servers.a.transport: is no value that fast-agent takes here",
    "mcp: {servers: {a: {args: [1, b]}}}": "mcp.servers.a.args.0: must be text\n    put the value in quotes",
    "mcp: {servers: {a: {args: '-x'}}}": "mcp.servers.a.args: must be a list",
    "mcp: {servers: {a: {env: {PORT: 80}}}}": "mcp.servers.a.env.PORT: must be text\n    put the value in quotes",
    "mcp: {servers: {a: {headers: {X: true}}}}": "mcp.servers.a.headers.X: must be text",
    "mcp: {servers: {a: hello}}": "mcp.servers.a: must be a mapping",
    "mcp: {targets: [{target: 'http://a', name: a}]}": "mcp.targets: fast-agent no longer takes it",
    "mcp: {servers: [a]}": "mcp.servers: must be a mapping",
    "default_model: 5": "default_model: must be text",
    "logger: {type: fil}": "logger.type: is no value that fast-agent takes here\n    did you mean `file`?",
    "logger: {progress_display: maybe}": "logger.progress_display: must be true or false",
    "openai: {api_key: [x]}": "openai.api_key: must be text",
    "otel: true": "otel: must be a mapping",
    "llm_retries: three": "llm_retries: must be a whole number",
    "llm_retries: []": "llm_retries: must be a whole number",
    "shell_execution: {timeout_seconds: abc}": "shell_execution.timeout_seconds: must be a whole number",
}
TAKEN = (
    "default_model: openai.gpt-4.1\nmcp:\n",
    "mcp: {servers: {a: {target: 'http://a', load_on_start: 'yes'}}}",
    "mcp: {servers: {a: {url: 'http://a', read_timeout_seconds: '30', headers: {X: '${Y}'}}}}",
    "mcp: {servers: {a: {command: python, args: [-m, x], env: {A: b}, cwd: /tmp}}}",
    "logger: {type: file, level: debug, progress_display: false, show_tools: 1}",
    "anthropic: {reasoning: high}\nopenai: {reasoning: {kind: effort, value: high}}",
    "shell_execution: {timeout_seconds: 45s, show_bash: true}",
    "llm_retries: '3'",
    "mcp: {servers: }",
    "shell_execution: {write_text_file_mode: off}",
    "shell_execution: {write_text_file_mode: auto}",
    "otel: {enabled: false, otlp_endpoint: 'http://c'}",
    "model_references: {system: {fast: sonnet}}",
    "model_capabilities: {vision: true}",
    "skills: {directories: [a, b]}",
)


def said(text: str) -> list[str]:
    tree = source.parse(text, name="fastagent.config.yaml")
    return [
        without_codes(str(problem)).removeprefix("fastagent.config.yaml:1:") for problem in config_rules.problems(tree)
    ]


def settings(text: str) -> Any:
    data = yaml.safe_load(text)
    return Settings(**{key: value for key, value in data.items() if key != "model_capabilities"})


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_rules_refuse_fast_agent_refuses(text: str) -> None:
    (problem,) = said(text)
    assert problem.partition(" ")[2].startswith(REFUSED[text])
    with pytest.raises(ValidationError):
        settings(text)


@pytest.mark.parametrize("text", TAKEN)
def test_what_fast_agent_takes_the_rules_take(text: str) -> None:
    assert said(text) == []
    assert settings(text)
