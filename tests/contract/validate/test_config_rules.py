"""Keys of fast-agent's configuration that it would ignore; values are compared with fast-agent in agent_runtime."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.validate import config_rules


@pytest.mark.parametrize(
    ("text", "field", "hint"),
    [
        ("mpc: {servers: {}}", "mpc", "did you mean `mcp`?"),
        ("mcp: {server: {}}", "mcp.server", "did you mean `servers`?"),
        ("mcp: {servers: {a: {comand: x}}}", "mcp.servers.a.comand", "did you mean `command`?"),
        ("openai: {base_uri: x}", "openai.base_uri", "did you mean `base_url`?"),
        ("mcpServers: {}", "mcpServers", "write `mcp: {servers: {...}}`"),
        ("servers: {}", "servers", "write `mcp: {servers: {...}}`"),
        ("model: sonnet", "model", "write `default_model: PROVIDER.MODEL`"),
        (
            "api_key: x",
            "api_key",
            "write `openai: {api_key: ${OPENAI_API_KEY}}`",
        ),
    ],
)
def test_an_unknown_key_is_a_warning_with_its_place(text: str, field: str, hint: str) -> None:
    (problem,) = config_rules.problems(source.parse(text, name="fastagent.config.yaml"))
    assert problem.level == "warning"
    assert problem.where.field == field
    assert problem.where.line == 1
    assert problem.hint == hint


@pytest.mark.parametrize("text", ["", "[]", "text"])
def test_a_file_that_is_no_mapping_is_for_others_to_refuse(text: str) -> None:
    assert list(config_rules.problems(source.parse(text, name="fastagent.config.yaml"))) == []
