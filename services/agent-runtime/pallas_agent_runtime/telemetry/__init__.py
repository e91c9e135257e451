"""Traces: spans of calls, delegations and model requests, sent to an OpenTelemetry collector when one is configured.

`spans` needs the API only, which the MCP SDK imports anyway; `export` needs the SDK, a third of a second of imports,
and is loaded when a collector is configured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import structlog

from pallas_agent_runtime.config.settings import Settings

log = structlog.get_logger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"


def enabled(environ: Mapping[str, str]) -> bool:
    """Return True where the standard variables name a collector and do not switch it off again."""
    off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporters = {part.strip() for part in (environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(",")}
    return not off and "otlp" in exporters and any(environ.get(key) for key in _ENDPOINTS)


@contextmanager
def recording(settings: Settings, provider: str, tools: frozenset[str], environ: Mapping[str, str]) -> Iterator[None]:
    """Record what happens inside, where a collector is configured. What is wrong with it stops no agent.

    `provider` is the prefix of the model, `tools` are the names of the agent's tools and prompts.
    """
    with ExitStack() as stack:
        if enabled(environ):
            protocol = next((environ[key] for key in _PROTOCOLS if environ.get(key)), PROTOCOL)
            if protocol != PROTOCOL:
                log.warning("telemetry", note=f"spans are sent by {PROTOCOL}, which is not the protocol asked for")
            try:
                from pallas_agent_runtime.telemetry import export  # noqa: PLC0415

                stack.enter_context(export.exporting(settings, provider, tools))
            except Exception as error:
                log.warning("telemetry_off", reason=type(error).__name__)
        yield
