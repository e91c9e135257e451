"""Spans of a serving process, sent to an OpenTelemetry collector where one is configured.

The SDK is a third of a second of imports and some ten megabytes: `export` has it, and is imported by who needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager

import structlog

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
def recording(exporting: Callable[[], AbstractContextManager[None]], environ: Mapping[str, str]) -> Iterator[None]:
    """Record what happens inside, where a collector is configured; `exporting` sets that up, and imports the SDK.

    What is wrong with it stops no program.
    """
    with ExitStack() as stack:
        if enabled(environ):
            protocol = next((environ[key] for key in _PROTOCOLS if environ.get(key)), PROTOCOL)
            if protocol != PROTOCOL:
                log.warning("telemetry", note=f"spans are sent by {PROTOCOL}, which is not the protocol asked for")
            try:
                stack.enter_context(exporting())
            except Exception as error:
                log.warning("telemetry_off", reason=type(error).__name__)
        yield
