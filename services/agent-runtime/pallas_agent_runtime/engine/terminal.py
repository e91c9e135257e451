"""fast-agent's terminal: nothing on stdout, and what it says on stderr as log events."""

from __future__ import annotations

import io
import re

import structlog
from fast_agent.ui.console import console, error_console
from rich.text import Text

log = structlog.get_logger(__name__)

_REASON = "Provider Error: "
_RETRY = re.compile(r"Retrying in (?P<seconds>[0-9.]+)s\.\.\. \(Attempt (?P<attempt>[0-9]+)/(?P<attempts>[0-9]+)\)")
"""The two lines that fast-agent prints, one after the other, before it asks a model again."""


class _Events(io.StringIO):
    """A stream that makes a log event of each text: rich hands over a `print` as one."""

    def __init__(self) -> None:
        super().__init__()
        self._reason = ""

    def write(self, text: str) -> int:
        line = " ".join(Text.from_ansi(text).plain.split()).lstrip("▲⟳ ")
        if retry := _RETRY.match(line):
            log.warning(
                "model_retry",
                reason=self._reason,
                attempt=int(retry["attempt"]),
                attempts=int(retry["attempts"]),
                seconds=float(retry["seconds"]),
            )
        elif line.startswith(_REASON):
            self._reason = line.removeprefix(_REASON).removesuffix("...").rstrip()
        elif line:
            log.warning("fast_agent", message=line)
        return len(text)


def silence() -> None:
    """Leave nothing of fast-agent's on the terminal.

    On stdout it shows the results of parallel tool calls whatever its `show_tools` says; on stderr that a model failed
    and is asked again, as plain text between the log's lines.
    """
    console.quiet = True
    error_console.soft_wrap = True  # else a line is cut into pieces of 80 columns
    error_console.file = _Events()
