"""Traces: spans of calls, delegations and model requests, sent to an OpenTelemetry collector when one is configured.

`spans` needs the API only, which the MCP SDK imports anyway; `export` needs the SDK, a third of a second of imports,
and is loaded when a collector is configured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from pallas_agent_runtime.config.settings import Settings
from pallas_service import telemetry


@contextmanager
def recording(settings: Settings, provider: str, tools: frozenset[str], environ: Mapping[str, str]) -> Iterator[None]:
    """Record what happens inside, where a collector is configured. What is wrong with it stops no agent.

    `provider` is the prefix of the model, `tools` are the names of the agent's tools and prompts.
    """

    def exporting() -> AbstractContextManager[None]:
        from pallas_agent_runtime.telemetry import export  # noqa: PLC0415

        return export.exporting(settings, provider, tools)

    with telemetry.recording(exporting, environ):
        yield
