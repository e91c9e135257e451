"""fast-agent's terminal: nothing on stdout, and what it says on stderr as log events."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import structlog
from fast_agent import LlmAgent
from fast_agent.agents.mcp_agent import McpAgent
from fast_agent.ui.console import console, error_console
from rich.text import Text

from pallas_agent_runtime.engine.patches import replaced

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


@contextmanager
def unseen() -> Iterator[None]:
    """Have no message prepared for the display meanwhile, a twentieth of a turn.

    `show_chat` is off (`config.fastagent_yaml`), which fast-agent asks for when all that it would show is made.
    """
    with ExitStack() as stack:
        stack.enter_context(replaced(LlmAgent, "_display_trailing_user_messages", _show_nothing))
        for kind in (LlmAgent, McpAgent):
            stack.enter_context(replaced(kind, "show_assistant_message", _show_no_message))
        yield


def _show_nothing(*_: Any, **__: Any) -> None:
    pass


async def _show_no_message(*_: Any, **__: Any) -> None:
    pass
