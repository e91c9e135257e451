"""The log tells a change of what an agent depends on, and not each look at it."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from pallas_agent_runtime.health.downstream import Downstream
from pallas_agent_runtime.health.preflight import Preflight, ProviderTarget
from pallas_contract.documents.reason import Reason
from pallas_contract.probe.probe import Result, Target


async def test_a_server_is_told_of_when_it_goes_and_when_it_comes_back() -> None:
    states = iter(
        ["ok", "ok", "error", "error", "error", "error", "ok", "ok"]
    )  # a change for the worse is asked for twice

    async def probe(target: Target, *, era: str, timeout: float) -> Result:
        state: Any = next(states)
        return Result(state, Reason() if state == "ok" else Reason("NoAnswer", "no answer in 3 s"))

    async def sleep(seconds: float) -> None:
        pass

    downstream = Downstream({"argos": Target("http://argos/mcp")}, probe, sleep=sleep)
    with structlog.testing.capture_logs() as lines:
        for _ in range(7):
            await downstream.refresh()
    assert [(line["log_level"], line["event"], line["server"], line["state"], line["reason"]) for line in lines] == [
        ("info", "downstream", "argos", "ok", ""),
        ("warning", "downstream", "argos", "error", "no answer in 3 s"),
        ("info", "downstream", "argos", "ok", ""),
    ]


async def test_a_provider_is_told_of_when_what_it_says_changes() -> None:
    reasons = iter(["HTTP 500", "HTTP 500", "HTTP 503", "", ""])

    async def check(provider: ProviderTarget) -> str:
        return next(reasons)

    provider = ProviderTarget("openai", "openai", "http://llm", "sk-secret", "m", active=True)
    checks = Preflight([provider], check)
    with structlog.testing.capture_logs() as lines:
        for _ in range(5):
            await checks.refresh(provider)
    assert [(line["log_level"], line["event"], line["provider"], line["reason"]) for line in lines] == [
        ("warning", "preflight", "openai", "HTTP 500"),
        ("warning", "preflight", "openai", "HTTP 503"),
        ("info", "preflight", "openai", "ok"),
    ]
    assert "sk-secret" not in str(lines)


@pytest.mark.parametrize(("named", "level"), [(True, "warning"), (False, "info")])
async def test_a_provider_that_nobody_runs_on_is_no_trouble(named: bool, level: str) -> None:
    async def check(provider: ProviderTarget) -> str:
        return "name not found"

    provider = ProviderTarget("openai", "openai", "http://llm", "sk-secret", named=named)
    with structlog.testing.capture_logs() as lines:
        await Preflight([provider], check).refresh(provider)
    note = {} if named else {"note": "its key is set, but no agent here runs on it"}
    expected = {"event": "preflight", "provider": "openai", "reason": "name not found", "log_level": level}
    assert lines == [expected | note]
