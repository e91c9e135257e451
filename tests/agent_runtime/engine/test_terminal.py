"""fast-agent's own prints: none reaches the terminal, and those of errors become log events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from fast_agent.llm.fastagent_llm import FastAgentLLM
from fast_agent.ui.console import console, error_console
from structlog.testing import capture_logs

from pallas_agent_runtime.engine.terminal import silence


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    before = error_console._file
    silence()
    yield
    console.quiet = False
    error_console.soft_wrap = False
    error_console.file = before  # type: ignore[assignment]


def test_a_retry_is_one_event_and_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    """fast-agent's own function prints it: an upgrade that words it otherwise fails here."""
    llm: Any = SimpleNamespace(
        _retry_wait_seconds=lambda attempt: 0.0,
        _log_retry_webdebug=lambda *_, **__: None,
        _paused_progress_display=nullcontext,
    )
    failure = ConnectionError("no route to the host, " + "long " * 40)
    with capture_logs() as lines:
        asyncio.run(FastAgentLLM._wait_before_retry(llm, failure, attempt=1, retries=3))
    assert lines == [
        {
            "event": "model_retry",
            "reason": str(failure).strip(),
            "attempt": 2,
            "attempts": 4,
            "seconds": 0.0,
            "log_level": "warning",
        }
    ]
    assert capfd.readouterr() == ("", "")


def test_anything_else_is_an_event_too_and_stdout_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with capture_logs() as lines:
        error_console.print("\n[bold red]Something:[/bold red]\n is wrong")
        error_console.print()
        console.print("a result")
    assert lines == [{"event": "fast_agent", "message": "Something: is wrong", "log_level": "warning"}]
    assert capfd.readouterr() == ("", "")
