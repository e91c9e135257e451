"""The table of model providers: each fact of a row arrives wherever one is needed, and a new provider is one row."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.health import preflight, providers
from pallas_contract.fleet import fastagent, source
from pallas_contract.fleet import providers as table
from pallas_contract.fleet.providers import ModelProvider
from pallas_contract.problems import Refused
from pallas_gen.project import load

NEW = ModelProvider(
    "acme",
    instrumentor="openai:OpenAIInstrumentor",
    api="openai",
    key_variable="ACME_KEY",
    url_variable="ACME_URL",
    default_url="https://api.acme.example/v1",
    aliases=("acme-eu",),
)
"""A provider that nobody has: the row is all that is written for it."""

WALKED = [(row, prefix) for row in (*table.CHECKED, NEW) for prefix in row.prefixes]


@pytest.fixture(params=WALKED, ids=lambda case: case[1])
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[ModelProvider, str]:
    """A row and one of its prefixes, the new one in the table."""
    monkeypatch.setattr(table, "PROVIDERS", (*table.PROVIDERS, NEW))
    monkeypatch.setattr(table, "CHECKED", (*table.CHECKED, NEW))
    monkeypatch.setattr(table, "PREFIXES", table.PREFIXES | set(NEW.prefixes))
    row, prefix = request.param
    return row, prefix


def build(text: str, prefix: str, environ: dict[str, str]) -> fastagent_yaml.Built:
    tree = source.parse(text, name="fastagent.secrets.yaml") if text else None
    return fastagent_yaml.build(None, tree, prefix=prefix, peers={}, environ=environ)


def test_a_model_is_split_at_every_prefix(case: tuple[ModelProvider, str]) -> None:
    row, prefix = case
    assert table.split(f"{prefix}.org/m.v1") == (prefix, "org/m.v1")
    assert table.find(prefix) == row
    assert fastagent.Config(default_model=f"{prefix}.m").calls_model


def test_without_a_key_the_agent_starts_and_is_checked(case: tuple[ModelProvider, str]) -> None:
    row, prefix = case
    data = build(f"{prefix}: {{api_key: '${{{row.key_variable}}}'}}", prefix, {}).data
    assert data[prefix]["api_key"] == fastagent_yaml.NO_KEY
    (target,) = preflight.targets(data, prefix, "m", {})
    assert (target.name, target.api, target.base_url) == (row.name, row.api, row.default_url)
    assert (target.key, target.model, target.active, target.needs_key) == ("", "m", True, True)


def test_key_and_address_come_from_the_variables_or_the_section(case: tuple[ModelProvider, str]) -> None:
    row, prefix = case
    environ = {row.key_variable: "k", row.url_variable: "http://mine:1/v1/"}
    (target,) = preflight.targets(build("", prefix, environ).data, prefix, "m", environ)
    assert (target.base_url, target.key, target.needs_key) == ("http://mine:1/v1", "k", False)
    text = f"{prefix}: {{api_key: own, base_url: 'http://own:2/v1'}}"
    (target,) = preflight.targets(build(text, prefix, environ).data, prefix, "m", environ)
    assert (target.base_url, target.key) == ("http://own:2/v1", "own")
    (target,) = preflight.targets(build("", "passthrough", environ).data, "passthrough", "", environ)
    assert (target.name, target.model, target.active) == (row.name, "", False)


def test_an_address_that_is_none_is_refused_where_it_is_written(case: tuple[ModelProvider, str]) -> None:
    row, prefix = case
    for active in (prefix, ""):  # of a bare name fast-agent alone knows whose it is
        with pytest.raises(Refused, match=rf"^\${row.url_variable}: has no valid port"):
            build("", active, {row.url_variable: "http://llm:70000/v1"})
    with pytest.raises(Refused, match=rf"^fastagent.secrets.yaml:1:\d+ {prefix}.base_url: is no URL"):
        build(f"{prefix}: {{base_url: 'llm'}}", prefix, {})
    build("", "passthrough", {row.url_variable: "http://llm:70000/v1"})


def test_the_sections_shape_is_checked_and_the_value_not_shown(case: tuple[ModelProvider, str], tmp_path: Path) -> None:
    _, prefix = case
    (tmp_path / "fastagent.secrets.yaml").write_text(f"{prefix}: {{api_key: [s3cret]}}\n")
    (problem,) = fastagent.load(tmp_path)[1]
    assert (problem.where.field, problem.message) == (f"{prefix}.api_key", "must be text")


def test_only_an_unset_key_is_warned_of_and_no_address(case: tuple[ModelProvider, str], tmp_path: Path) -> None:
    row, prefix = case
    text = f"{prefix}: {{api_key: '${{{row.key_variable}}}', base_url: '${{{row.url_variable}}}'}}\n"
    (tmp_path / "fastagent.secrets.yaml").write_text(text)
    (tmp_path / "a.md").write_text("---\ntype: agent\nname: a\nmodel: passthrough\n---\nHello.\n")
    (tmp_path / "agents.yaml").write_text("name: x\nnamespace: x\nagents: {a: {card: a.md, port: 1234}}\n")
    warnings = load.load(tmp_path / "agents.yaml", {}).warnings
    assert [str(problem.where.field) for problem in warnings] == [f"{prefix}.api_key"]


async def test_there_is_a_check_and_an_instrumentor(case: tuple[ModelProvider, str]) -> None:
    row, prefix = case
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(401)

    (target,) = preflight.targets({}, prefix, "m", {row.key_variable: "k"})
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        assert await providers.check(http, target) == "API key rejected (HTTP 401)"
    assert asked[0].startswith(row.default_url)


@pytest.mark.parametrize("row", table.PROVIDERS, ids=lambda row: row.name)
def test_the_instrumentor_comes_with_fast_agent(row: ModelProvider) -> None:
    module, _, instrumentor = row.instrumentor.partition(":")
    found: Any = importlib.import_module(f"opentelemetry.instrumentation.{module}")
    assert hasattr(found, instrumentor)


@pytest.mark.parametrize("model", ["gpt-4.1", "sonnet", "nonsense.m", "org/m", "/m"])
def test_a_name_without_a_known_prefix_is_left_whole(model: str) -> None:
    assert table.split(model) == ("", model)
    assert fastagent.Config(default_model=model).calls_model


@pytest.mark.parametrize("model", ["passthrough", "fast-agent.passthrough", "slow", ""])
def test_built_in_models_call_nobody(model: str) -> None:
    assert not fastagent.Config(default_model=model).calls_model


def test_every_shape_of_an_api_has_a_check() -> None:
    assert {row.api for row in table.CHECKED} == set(providers.CHECKS)
