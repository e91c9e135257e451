"""Log lines of the long-running programs: one JSON object per line on stdout, or text for people.

A program logs with `structlog.get_logger()`; what libraries log through `logging` takes the same way out. Only the
registry and the agent runtime import this module: structlog is no requirement of the base distribution.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

_FIRST = ("timestamp", "level", "event")


def configure(fmt: str, *, stream: TextIO | None = None, extra: Sequence[Processor] = (), **bound: str) -> None:
    """Send every log line from INFO up to `stream` (stdout), with `bound` in each of them. May be called again.

    `extra` are processors of the program, for every line.

    `fmt` is `json` or `text` (names.ENV_LOG_FORMAT); any other value means `json`, because a log line in the wrong
    format is worth more than a program that does not start.
    """
    output = stream or sys.stdout
    text = fmt == "text"
    clock = structlog.processors.TimeStamper(fmt="%H:%M:%S" if text else "iso", utc=not text)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        clock,
        _binder(bound),
        *extra,
    ]
    rendered = _text(colors=output.isatty()) if text else _json()
    handler = _Handler(output)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, *rendered],
        logger_factory=partial(_Lines, handler),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=False,  # one that is cached would keep an earlier configuration
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
    )
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]  # a library may have added one of its own, and each line would come twice
    root.setLevel(logging.INFO)


class _Handler(logging.StreamHandler[TextIO]):
    """The one way out; trouble with it is shown on stderr, and is no trouble of who logs."""

    def write(self, line: str) -> None:
        """Write a line that is rendered already."""
        self.acquire()
        try:
            self.stream.write(line + self.terminator)
            self.flush()
        except Exception:  # as `emit` does
            self.handleError(logging.makeLogRecord({"msg": line}))
        finally:
            self.release()


class _Lines:
    """Logger behind structlog's processors, with the level that `logging` has for its name.

    It makes no `LogRecord`, which would take longer than the line: a gateway writes one for each call.
    """

    def __init__(self, handler: _Handler, name: str | None = None) -> None:
        self._logger = logging.getLogger(name)
        self.info = self.warning = self.error = self.critical = handler.write

    @property
    def disabled(self) -> bool:
        return self._logger.disabled

    def getEffectiveLevel(self) -> int:  # noqa: N802 - as `logging` has it
        """Return the level from which on lines are written."""
        return self._logger.getEffectiveLevel()

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - what structlog before 25.4 asks instead
        """Return whether lines of a level are written."""
        return self._logger.isEnabledFor(level)


def _binder(bound: dict[str, str]) -> Processor:
    """Return what puts time, level and event first: a line stays readable when a terminal cuts it. `bound` follows."""

    def bind(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        first = {key: event.pop(key) for key in _FIRST if key in event}
        return {**first, **bound, **event}

    return bind


def _text(*, colors: bool) -> list[Processor]:
    plain = structlog.dev.plain_traceback  # rich's shows the local variables, and those may hold secrets
    return [structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0, exception_formatter=plain)]


def _json() -> list[Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_dumps)]


def _dumps(value: Any, default: Any = None, **_: Any) -> str:
    return _encoder(default).encode(value)


@cache
def _encoder(default: Callable[[Any], Any] | None) -> json.JSONEncoder:
    # `json.dumps` makes one for each line
    return json.JSONEncoder(default=default, ensure_ascii=False, check_circular=False, separators=(",", ":"))
