"""Startup Preflight of seed 001 over real HTTP: what a provider is asked, and what each kind of answer is called."""

from __future__ import annotations

from typing import Any

import pytest
import uvloop

from pallas_agent_runtime.health import providers
from pallas_agent_runtime.health.preflight import ProviderTarget


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "TIMEOUT", 60.0)


def provider(name: Any, url: str, model: str = "m", key: str = "sk-test") -> ProviderTarget:
    return ProviderTarget(name, name, f"{url}/v1" if name == "openai" else url, key, model, active=bool(model))


async def check(asked: ProviderTarget) -> str:
    async with providers.client() as http:
        return await providers.check(http, asked)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("mood", "reason"),
    [
        ("", ""),
        ("401", "API key rejected (HTTP 401)"),
        ("401 without end", "API key rejected (HTTP 401)"),
        ("403", "API key rejected (HTTP 403)"),
        ("500", "HTTP 500"),
        ("503", "HTTP 503"),
        ("lost", "connection lost"),
        ("gzip", "gave no valid answer"),
    ],
)
async def test_what_a_provider_answers_is_named(parts: Any, name: str, mood: str, reason: str) -> None:
    with parts.providing(parts.Provider(mood=mood)) as url:
        assert await check(provider(name, url)) == reason


@pytest.mark.parametrize("mood", ["<html>", "[]", "{}", '{"data": [{"id": ["m"]}]}', "null", "deep", "\xff", "flood"])
async def test_garbage_is_named_and_not_kept(parts: Any, mood: str) -> None:
    with parts.providing(parts.Provider(mood=mood)) as url:
        assert await check(provider("openai", url)) == "gave no valid answer"


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize("mood", ["hang", "drip"])
async def test_a_provider_that_takes_too_long_is_left(
    parts: Any, name: str, mood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then buys no time: the seconds are for the whole answer. The five: test_provider_down.py."""
    monkeypatch.setattr(providers, "TIMEOUT", 0.5)
    with parts.providing(parts.Provider(mood=mood)) as url:
        assert await check(provider(name, url)) == "no answer in 0.5 s"


@pytest.mark.parametrize(
    ("name", "model", "reason"),
    [
        ("openai", "", ""),
        ("openai", "bad-model", "model 'bad-model' not found"),
        ("anthropic", "bad-model", "model 'bad-model' not found"),
        ("anthropic", "", ""),
    ],
)
async def test_the_model_is_looked_for_where_it_is_the_active_one(
    parts: Any, name: str, model: str, reason: str
) -> None:
    with parts.providing(parts.Provider(models=("m", "claude-sonnet-4-5"))) as url:
        assert await check(provider(name, url, model)) == reason


@pytest.mark.parametrize(
    ("name", "model", "path", "headers"),
    [
        ("openai", "m", "/v1/models", {"authorization": "Bearer sk-test"}),
        ("openai", "", "/v1/models", {"authorization": "Bearer sk-test"}),
        ("anthropic", "m", "/v1/models/m", {"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}),
        ("anthropic", "", "/v1/models/claude-sonnet-4-5", {"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}),
    ],
)
async def test_one_question_is_asked_as_the_provider_wants_it(
    parts: Any, name: str, model: str, path: str, headers: dict[str, str]
) -> None:
    asked = parts.Provider()
    with parts.providing(asked) as url:
        await check(provider(name, url, model))
    ((found, sent),) = asked.asked
    keys = {"authorization", "x-api-key", "anthropic-version"}
    assert (found, {key: sent[key] for key in keys & sent.keys()}) == (path, headers)


async def test_who_is_not_there_is_told_from_who_cannot_be_trusted(parts: Any, toolkit: Any) -> None:
    nobody = f"127.0.0.1:{toolkit.free_port()}"
    assert await check(provider("openai", f"http://{nobody}")) == f"connection refused ({nobody})"
    with parts.providing(parts.Provider()) as url:
        assert (
            await check(provider("openai", url.replace("http:", "https:")))
            == f"TLS error ({url.removeprefix('http://').partition('/')[0]})"
        )


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_key_goes_to_no_other_port(parts: Any, name: str) -> None:
    """The loop that agents run on leaves 65536 out."""
    asked = parts.Provider()
    with parts.providing(asked) as url:
        beyond = f"http://127.0.0.1:{int(url.rpartition(':')[2]) + 65536}"
        assert uvloop.run(check(provider(name, beyond))) == "base_url has no valid port"
    assert asked.asked == []
