"""Log levels of an agent. What callers say never gets into its lines: only names, numbers and reasons do."""

from __future__ import annotations

import logging
from typing import TextIO

from pallas_agent_runtime.telemetry import spans
from pallas_service import logging as service_logging

_LEVELS = {
    "pallas_agent_runtime": logging.INFO,
    "pallas_service.telemetry": logging.INFO,
    "fast_agent": logging.ERROR,
    "opentelemetry": logging.CRITICAL,
}
"""Everything else from WARNING up; fast-agent's warnings quote what tools answered, and OpenTelemetry complains of a
lost collector with every batch, where `telemetry` says it once."""


def configure(fleet: str, agent: str, fmt: str, stream: TextIO | None = None) -> None:
    """Log to `stream` (stdout) in the house format, each line with the names of fleet (seed 001, `name`) and agent."""
    service_logging.configure(fmt, stream=stream, extra=[spans.ids], fleet=fleet, agent=agent)
    logging.getLogger().setLevel(logging.WARNING)
    for name, level in _LEVELS.items():
        logging.getLogger(name).setLevel(level)
