"""The trace that a call is part of: the caller's, where it says which, or one of its own."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from starlette.requests import Request

from pallas_gateway.telemetry import spans

_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

NewId = Callable[[], str]
"""Makes 32 hexadecimal digits."""


def new_id() -> str:
    """Return the id of a new trace."""
    return uuid.uuid4().hex


class Tracing:
    """Ids of traces; `new` makes those that nobody has given."""

    def __init__(self, new: NewId = new_id) -> None:
        self._new = new

    def trace(self, request: Request | None) -> str:
        """Return the id of the trace that a request is part of."""
        header = request.headers.get("traceparent", "") if request is not None else ""
        match = _TRACEPARENT.fullmatch(header)
        return match[1] if match else self._new()

    def traceparent(self, trace: str) -> str:
        """Return the header by which a peer takes part in `trace` (W3C Trace Context), below the span around."""
        return spans.traceparent() or f"00-{trace}-{self._new()[:16]}-01"
