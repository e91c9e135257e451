"""Secrets in plain text: where they are looked for, and the line to write instead."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.validate import plain_secrets

CONFIG = [
    ("openai: {api_key: hunter22}", "openai.api_key", "OPENAI_API_KEY"),
    ("responses: {api_key: hunter22}", "responses.api_key", "OPENAI_API_KEY"),
    ("groq: {api_key: hunter22}", "groq.api_key", "GROQ_API_KEY"),
    ("openai: {api_key: 123456}", "openai.api_key", "OPENAI_API_KEY"),
    ("mcp: {servers: {a: {headers: {Authorization: Bearer hunter22}}}}", "headers.Authorization", "A_TOKEN"),
    ("mcp: {servers: {a: {headers: {X-Api-Key: hunter22}}}}", "headers.X-Api-Key", "A_API_KEY"),
    ("mcp: {servers: {a: {headers: {X-Other: Bearer hunter22}}}}", "headers.X-Other", "A_TOKEN"),
    ("mcp: {servers: {a: {url: 'https://u:hunter22@h/mcp'}}}", "a.url", "A_TOKEN"),
    ("mcp: {servers: {my-db: {args: [--password, hunter22]}}}", "my-db.args.1", "MY_DB_TOKEN"),
    ("mcp: {servers: {a: {command: x --token hunter22}}}", "a.command", "A_TOKEN"),
    ("mcp: {servers: {a: {env: {DB_PASSWORD: hunter22}}}}", "a.env.DB_PASSWORD", "DB_PASSWORD"),
    ("mcp: {servers: {a: {auth: {client_secret: hunter22}}}}", "a.auth.client_secret", "A_CLIENT_SECRET"),
    ("otel: {otlp_settings: {headers: [x, sk-A1b2C3d4E5f6G7h8]}}", "headers.1", "OTLP_SETTINGS_TOKEN"),
]


@pytest.mark.parametrize(("text", "field", "variable"), CONFIG)
def test_a_secret_in_the_configuration_is_placed_and_a_variable_named(text: str, field: str, variable: str) -> None:
    (problem,) = plain_secrets.in_config(source.parse(text, name="fastagent.config.yaml"))
    assert problem.where.field.endswith(field)
    assert problem.where.line == 1
    assert f"`${{{variable}}}`" in problem.hint
    assert f"`defaults: {{secrets: {{{variable}: {{file: secrets/{variable}.txt}}}}}}`" in problem.hint
    assert "hunter22" not in str(problem)


@pytest.mark.parametrize(
    ("section", "field"),
    [("defaults: {env: {TOKEN: hunter22}}", "defaults.env.TOKEN"), ("registry: {env: {TOKEN: a1b2c3}}", "env.TOKEN")],
)
def test_a_secret_in_any_env_becomes_one_of_secrets(section: str, field: str) -> None:
    (problem,) = plain_secrets.in_fleet(source.parse(section, name="agents.yaml"))
    assert problem.where.field.endswith(field)
    assert "`secrets: {TOKEN: {file: secrets/TOKEN.txt}}`" in problem.hint
    assert plain_secrets.ALLOW in problem.hint


def test_a_reference_by_file_is_no_secret() -> None:
    text = "agents: {a: {secrets: {API_KEY: {file: x}}, access: {tokens: {b: {file: s/b}}}, description: a token}}"
    assert list(plain_secrets.in_fleet(source.parse(text, name="agents.yaml"))) == []


def test_one_that_is_allowed_is_a_warning_that_names_the_option() -> None:
    fleet = source.parse("name: x", name="agents.yaml")
    config = source.parse("openai: {api_key: hunter22}", name="x")
    (problem,) = plain_secrets.problems(fleet, config, allow=False)
    (allowed,) = plain_secrets.problems(fleet, config, allow=True)
    assert problem.level == "error"
    assert (allowed.level, allowed.where, allowed.message) == ("warning", problem.where, problem.message)
    assert "--allow-plain-secrets" in allowed.hint


@pytest.mark.parametrize("key", ["args", "entrypoint", "command"])
def test_a_secret_on_the_command_line_of_an_image_is_found(key: str) -> None:
    text = f"services: {{db: {{image: 'acme/db:1', {key}: [db, --password, hunter22]}}}}"
    (problem,) = plain_secrets.in_fleet(source.parse(text, name="agents.yaml"))
    assert problem.where.field == f"services.db.{key}.2"
    assert "hunter22" not in str(problem)
