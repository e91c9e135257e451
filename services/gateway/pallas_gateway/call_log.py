"""One log line for each request that went through the gateway, or was refused by it."""

from __future__ import annotations

import structlog

from pallas_gateway.data_plane.record import Call, Record

log = structlog.get_logger(__name__)
_SHOWN = 200
"""Characters of a name from outside that are written."""


class CallLog:
    """A `Watcher` that writes who called what, and how it ended; never arguments or results.

    It keeps the configuration of logging that is there when it is made.
    """

    def __init__(self) -> None:
        self._log = log.bind()  # else each line would set up a logger of its own

    def begin(self, call: Call) -> None:
        """Write nothing: a call is one line, at its end."""

    def end(self, record: Record) -> None:
        call = record.call
        self._log.info(
            "call",
            agent=call.agent[:_SHOWN],
            caller=call.caller or None,
            tenant=call.tenant or None,
            method=call.method[:_SHOWN],
            name=call.name and call.name[:_SHOWN],
            outcome=record.outcome,
            status=record.status,
            seconds=round(record.seconds, 4),
            trace_id=call.trace or None,
        )
