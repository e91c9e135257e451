"""Every provider of the installed fast-agent without any key: an instance is made, and the provider is named."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from fast_agent import FastAgent
from fast_agent.core.exceptions import ProviderKeyError
from fast_agent.llm.provider_types import Provider

from pallas_agent_runtime.conversations.store import Conversations, MemoryStore
from pallas_agent_runtime.engine import Engine, EngineFailed, Forwarding, Loaded, Programs, weigh
from pallas_agent_runtime.engine.patches import MissingKeys
from pallas_contract.fleet import engine_table
from tests.agent_runtime.engine.keyless import CONFIG, SEPARATE

KEYLESS = frozenset({Provider.FAST_AGENT, Provider.GENERIC, Provider.OPENRESPONSES, Provider.COPILOT})
"""Those that have a model of their own or a server on this machine; of Copilot a login is asked with the first call."""
NAMED = {provider: name for name, provider in sorted(engine_table.models().items(), reverse=True)}
"""A model of each provider that takes only those it knows."""


@pytest.fixture(autouse=True)
def _no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN", "_CREDENTIALS")):
            monkeypatch.delenv(name)
    for name in ("HOME", "HF_HOME", "FAST_AGENT_HOME", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "fast-agent.yaml").write_text(yaml.safe_dump(CONFIG))


async def make(model: str) -> None:
    app = FastAgent("keys", parse_cli_args=False, quiet=True)

    @app.agent("scout", "Help.", model=model)
    async def scout() -> None: ...

    async with app.harness() as harness:
        await harness.session("one", agent_name="scout")


@pytest.mark.parametrize("provider", [row for row in Provider if row.value not in SEPARATE], ids=lambda row: row.value)
async def test_an_instance_is_made_without_a_key(provider: Provider) -> None:
    keys = MissingKeys()
    with keys.tolerated():
        await make(NAMED.get(provider.value, f"{provider.value}.m"))
    assert keys.providers == (set() if provider in KEYLESS else {provider.value})


def engine_of(app: FastAgent) -> Engine:
    settings: Any = SimpleNamespace(agent=SimpleNamespace(shell=True, functions=[]))
    return Engine(
        Loaded(app, "scout"),
        settings,
        Conversations(MemoryStore(weigh), weigh),
        choose=list,
        programs=Programs(frozenset(), lambda *_: None),
        forwarding=Forwarding({}, lambda *_: False, lambda _: False),
    )


async def test_a_package_that_is_missing_ends_the_start_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that nobody thought of; those that are known are named before (test_definition)."""
    monkeypatch.setattr("fast_agent.llm.provider.bedrock.llm_bedrock._boto3", None)
    app = FastAgent("keys", parse_cli_args=False, quiet=True)

    @app.agent("scout", "Help.", model="bedrock.m")
    async def scout() -> None: ...

    engine = engine_of(app)
    with pytest.raises(EngineFailed, match=r"^ImportError: boto3 is required"):
        async with engine.running():
            raise AssertionError


async def test_the_engine_knows_the_model_of_the_agent_that_is_asked() -> None:
    app = FastAgent("keys", parse_cli_args=False, quiet=True)

    @app.agent("scout", "Help.", model="openai.gpt-4.1")
    async def scout() -> None: ...

    @app.agent("other", "Help.", model="passthrough")
    async def other() -> None: ...

    engine = engine_of(app)
    assert (engine.model, engine.provider) == ("", "")
    async with engine.running():
        assert (engine.model, engine.provider) == ("gpt-4.1", "openai")


async def test_a_key_that_is_there_by_now_is_missing_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = MissingKeys()
    with keys.tolerated():
        await make("groq.m")
        assert keys.providers == {"groq"}
        monkeypatch.setenv("GROQ_API_KEY", "gsk-x")
        await make("groq.m")
        assert keys.providers == set()


async def test_afterwards_fast_agent_is_as_it_was() -> None:
    with MissingKeys().tolerated():
        pass
    with pytest.raises(ProviderKeyError):
        await make("groq.m")
