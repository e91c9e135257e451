"""Seed 001, Startup Preflight: which providers are asked what, and how the answers read."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import httpx
import pytest
import structlog

from pallas_agent_runtime.config import fastagent_yaml
from pallas_agent_runtime.health import providers
from pallas_agent_runtime.health.preflight import SOON, Outcome, Preflight, ProviderTarget, keyless, targets
from pallas_contract.fleet.providers import split

OPENAI_BASE_URL = "https://api.openai.com/v1"


def active(name: Any = "openai", **changes: Any) -> ProviderTarget:
    usual = {"api": name, "base_url": "http://llm/v1", "key": "k", "model": "m", "active": True}
    return ProviderTarget(name=name, **{**usual, **changes})


def asked(name: Any, url: str, key: str, model: str = "", *, needs_key: bool = False) -> ProviderTarget:
    """What is checked: the active provider when there is a model."""
    return ProviderTarget(name, name, url, key, model, active=bool(model), needs_key=needs_key)


async def answer(provider: ProviderTarget, respond: Any) -> tuple[str, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        reply: httpx.Response = respond(request) if callable(respond) else respond
        return reply

    async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as http:
        return await providers.check(http, provider), seen


def models(*names: str) -> httpx.Response:
    return httpx.Response(200, json={"data": [{"id": name} for name in names]})


def raising(error: Exception) -> Any:
    def respond(_: httpx.Request) -> httpx.Response:
        raise error

    return respond


@pytest.mark.parametrize(
    ("provider", "respond", "reason"),
    [
        (active(), models("x", "m"), ""),
        (active(), models("x"), "model 'm' not found"),
        (active(model=""), models(), ""),
        (active(key=""), models("m"), ""),
        (active(), httpx.Response(401), "API key rejected (HTTP 401)"),
        (active(), httpx.Response(503), "HTTP 503"),
        (active(), httpx.Response(302, headers={"location": "/x"}), "HTTP 302"),
        (active(), httpx.Response(200, text="<html>"), "gave no valid answer"),
        (active(), httpx.Response(200, json=["x"]), "gave no valid answer"),
        (active(), httpx.Response(200, json={"data": [1]}), "gave no valid answer"),
        (active(), raising(httpx.ConnectError("no")), "connection refused (llm)"),
        (
            active(base_url="http://me:key@llm:81/x?key=y"),
            raising(httpx.ConnectError("")),
            "connection refused (llm:81)",
        ),
        (active(), raising(httpx.ReadError("no")), "connection lost"),
        (active(), raising(TimeoutError()), "no answer in 5 s"),
        (active(base_url="://bad"), models("m"), "base_url is no URL"),
        (active(base_url="localhost:11434/v1"), models("m"), "base_url is no URL"),
        (active(base_url="http://[::1"), models("m"), "base_url is no URL"),
        (active(base_url="http://llm:0/v1"), models("m"), "base_url has no valid port"),
        (active(base_url="http://llm:-1"), models("m"), "base_url has no valid port"),
        (active("anthropic", base_url="http://llm:99999"), models("m"), "base_url has no valid port"),
        (active(), raising(ExceptionGroup("all addresses", [OSError("no")])), "gave no valid answer"),
        (active("anthropic"), httpx.Response(200), ""),
        (active("anthropic"), httpx.Response(404), "model 'm' not found"),
        (active("anthropic"), httpx.Response(403), "API key rejected (HTTP 403)"),
        (active("anthropic", key=""), httpx.Response(200), "no API key"),
        (active(key="", needs_key=True), models("m"), "no API key"),
    ],
)
async def test_the_reason_is_fit_for_a_tooltip(provider: ProviderTarget, respond: Any, reason: str) -> None:
    assert (await answer(provider, respond))[0] == reason


async def test_what_is_asked_of_openai() -> None:
    _, (request,) = await answer(active(), models("m"))
    assert (str(request.url), request.headers["authorization"]) == ("http://llm/v1/models", "Bearer k")
    _, (request,) = await answer(active(key=""), models("m"))
    assert "authorization" not in request.headers


@pytest.mark.parametrize(("model", "asked"), [("m", "m"), ("", "claude-sonnet-4-5")])
@pytest.mark.parametrize("base_url", ["http://llm", "http://llm/v1"])
async def test_what_is_asked_of_anthropic(model: str, asked: str, base_url: str) -> None:
    _, (request,) = await answer(active("anthropic", model=model, base_url=base_url), httpx.Response(200))
    assert str(request.url) == f"http://llm/v1/models/{asked}"
    assert request.headers["x-api-key"] == "k"
    assert request.headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize(
    ("data", "default_model", "environ", "found"),
    [
        ({}, "passthrough", {}, []),
        ({}, "openai.m", {}, [asked("openai", OPENAI_BASE_URL, "", "m", needs_key=True)]),
        (
            {"openai": {"api_key": fastagent_yaml.NO_KEY}},
            "openai.m",
            {},
            [asked("openai", OPENAI_BASE_URL, "", "m", needs_key=True)],
        ),
        (
            {"openai": {"api_key": "${K}", "base_url": "${U:http://d/v1/}"}},
            "openai.org/m?temperature=1",
            {"K": "k"},
            [asked("openai", "http://d/v1", "k", "org/m")],
        ),
        (
            {"anthropic": {"base_url": "http://a"}},
            "openai.m",
            {"ANTHROPIC_API_KEY": "ak", "OPENAI_API_KEY": "ok", "OPENAI_BASE_URL": "http://o"},
            [asked("anthropic", "http://a", "ak"), asked("openai", "http://o", "ok", "m")],
        ),
        (
            {},
            "passthrough",
            {"ANTHROPIC_API_KEY": "ak", "ANTHROPIC_BASE_URL": "http://env"},
            [asked("anthropic", "http://env", "ak")],
        ),
    ],
)
def test_the_active_provider_and_those_with_a_key_are_checked(
    data: dict[str, Any], default_model: str, environ: dict[str, str], found: list[ProviderTarget]
) -> None:
    assert targets(data, *split(default_model), environ) == found


@pytest.mark.parametrize(
    ("prefixes", "data", "environ", "reason"),
    [
        ((), {}, {}, ""),
        (("hf", "groq"), {}, {}, "groq, hf: no API key"),
        (("openai",), {}, {}, "openai: no API key"),
        (("responses",), {"openai": {"base_url": f"{OPENAI_BASE_URL}/"}}, {}, "responses: no API key"),
        (("openai", "hf"), {}, {"OPENAI_BASE_URL": "http://own/v1"}, "hf: no API key"),
        (("anthropic",), {"anthropic": {"base_url": "http://own"}}, {}, ""),
    ],
)
def test_who_needs_a_key_and_has_none(
    prefixes: tuple[str, ...], data: dict[str, Any], environ: dict[str, str], reason: str
) -> None:
    assert keyless(prefixes, data, environ) == reason


async def test_only_the_active_providers_failure_counts_and_its_recovery_is_seen() -> None:
    replies = [httpx.Response(500), models("m")]
    checked = [active("anthropic", active=False), active()]
    transport = httpx.MockTransport(
        lambda request: httpx.Response(500) if "v1/models/" in str(request.url) else replies.pop(0)
    )
    async with httpx.AsyncClient(transport=transport) as http:
        now = [1.0]
        checks = Preflight(checked, partial(providers.check, http), clock=lambda: now[0])
        assert checks.active_failure == ""
        for provider in checked:
            await checks.refresh(provider)
        assert checks.active_failure == "openai: HTTP 500"
        assert checks.outcomes["anthropic"] == Outcome("HTTP 500", 1.0)
        now[0] = 4.0
        assert checks.age(checks.outcomes["openai"]) == 3.0
        assert (await checks.refresh(checked[1])).ok
        assert checks.active_failure == ""


@pytest.mark.parametrize(
    ("secretive", "public"), [(True, "connection refused"), (False, "connection refused (llm:81)")]
)
async def test_the_address_is_in_the_log_alone_where_callers_need_a_token(secretive: bool, public: str) -> None:
    target = active(base_url="http://me:key@llm:81/v1")
    transport = httpx.MockTransport(raising(httpx.ConnectError("no")))
    async with httpx.AsyncClient(transport=transport) as http:
        checks = Preflight([target], partial(providers.check, http), secretive=secretive)
        with structlog.testing.capture_logs() as lines:
            await checks.refresh(target)
            await checks.refresh(target)
    assert (checks.active_failure, checks.outcomes["openai"].reason) == (f"openai: {public}", public)
    assert [line["reason"] for line in lines] == ["connection refused (llm:81)"]


async def test_a_check_that_raises_is_a_reason_and_ends_nothing() -> None:
    """No answer of a provider ends an agent, also none that nobody has thought of."""

    async def check(provider: ProviderTarget) -> str:
        raise ZeroDivisionError

    checks = Preflight([ProviderTarget("openai", "openai", "https://api.example", "sk-x", active=True)], check)
    assert (await checks.refresh(checks._providers[0])).reason == "the check failed by itself: ZeroDivisionError"
    assert checks.active_failure == "openai: the check failed by itself: ZeroDivisionError"


async def test_a_turn_that_failed_has_the_provider_checked_at_once_and_then_as_one_that_is_not_well() -> None:
    asked: asyncio.Queue[str] = asyncio.Queue()
    reasons = iter([""])
    now = [0.0]

    async def check(provider: ProviderTarget) -> str:
        asked.put_nowait(reason := next(reasons, "HTTP 500"))
        return reason

    checks = Preflight([active("anthropic", active=False), active()], check, clock=lambda: now[0])
    checks.outcomes["anthropic"] = Outcome("", 0.0)
    watching = asyncio.create_task(checks._watch(checks._providers[1]))
    assert await asyncio.wait_for(asked.get(), 60) == ""
    await checks.doubt()
    assert asked.empty(), "asked a moment ago"
    now[0] = SOON
    await asyncio.gather(checks.doubt(), checks.doubt())
    assert checks.active_failure == "openai: HTTP 500"
    assert [await asyncio.wait_for(asked.get(), 60) for _ in range(2)] == ["HTTP 500", "HTTP 500"]
    watching.cancel()


async def test_the_active_provider_is_unchecked_until_there_is_an_outcome() -> None:
    """A provider that hangs and is not the one that turns run on is waited for by nobody."""
    entered, released = asyncio.Event(), asyncio.Event()

    async def check(provider: ProviderTarget) -> str:
        if not provider.active:
            await asyncio.Event().wait()
        entered.set()
        await released.wait()
        return "HTTP 500"

    checks = Preflight([active("anthropic", active=False), active()], check)
    watching = asyncio.create_task(checks.run())
    await entered.wait()
    assert (checks.unchecked, checks.checked.is_set()) == (["openai"], False)
    released.set()
    await asyncio.wait_for(checks.checked.wait(), 60)
    assert (checks.unchecked, checks.active_failure) == ([], "openai: HTTP 500")
    watching.cancel()


@pytest.mark.parametrize("providers", [[], [active("anthropic", active=False)]], ids=["none", "no active one"])
async def test_without_a_provider_for_turns_there_is_nothing_to_wait_for(providers: list[ProviderTarget]) -> None:
    async def check(provider: ProviderTarget) -> str:
        await asyncio.Event().wait()
        return ""

    checks = Preflight(providers, check)
    assert checks.unchecked == []
    watching = asyncio.create_task(checks.run())
    await asyncio.wait_for(checks.checked.wait(), 60)
    watching.cancel()
