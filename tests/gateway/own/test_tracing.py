"""The trace of a call: the caller's where its header is one, else a new one."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from pallas_gateway.own.tracing import Tracing

NEW = "cd" * 16


@pytest.mark.parametrize(
    ("header", "trace"),
    [
        (f"00-{'ab' * 16}-{'12' * 8}-01", "ab" * 16),
        (f"00-{'00' * 16}-{'12' * 8}-01", NEW),  # W3C Trace Context 3.2.2: all zeros is invalid
        (f"00-{'ab' * 16}-{'00' * 8}-01", NEW),
        (f"00-{'AB' * 16}-{'12' * 8}-01", NEW),
        ("", NEW),
    ],
)
def test_a_trace_is_the_callers_where_it_names_one(header: str, trace: str) -> None:
    request = Request({"type": "http", "headers": [(b"traceparent", header.encode())]})
    assert Tracing(lambda: NEW).trace(request) == trace
