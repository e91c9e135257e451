"""Headers that pass the gateway, by name: everything else ends at it, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pallas_contract import names

Pairs = list[tuple[bytes, bytes]]

_MCP = b"mcp-"
_REQUEST = frozenset({b"accept", b"content-type", b"last-event-id", b"traceparent", b"tracestate", b"user-agent"})
"""Neither credentials nor cookies: the caller's token is for the gateway only. No `Accept-Encoding`: an event stream
that is compressed is held back until there is enough of it."""
_CALLER = names.CALLER_HEADER.encode()
_TRACE = frozenset({b"traceparent", b"tracestate"})
_RESPONSE = frozenset(
    {b"allow", b"cache-control", b"content-encoding", b"content-length", b"content-type", b"retry-after"}
    | {b"x-accel-buffering"}
)
"""No challenge: it would send the client to an authorization server for a resource that it does not know."""


def for_agent(headers: Iterable[tuple[bytes, bytes]], *, token: str, caller: str, traceparent: str = "") -> Pairs:
    """Return the headers of a request to an agent, from those of the client (names in lower case).

    `token` is the gateway's own for that agent, `caller` the digest of the verified caller, `traceparent` that of a
    span of the gateway, in place of the client's; each may be empty.
    """
    request = _REQUEST - _TRACE if traceparent else _REQUEST
    passed = [header for header in headers if header[0] in request or header[0].startswith(_MCP)]
    if traceparent:
        passed.append((b"traceparent", traceparent.encode()))
    if token:
        passed.append((b"authorization", b"Bearer " + token.encode()))
    if caller:
        passed.append((_CALLER, caller.encode()))
    return passed


def for_client(headers: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]) -> Pairs:
    """Return those headers of an agent's answer that the client gets, with names in lower case."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lower = ((name.lower(), value) for name, value in pairs)
    return [(name, value) for name, value in lower if name in _RESPONSE or name.startswith(_MCP)]


def is_stream(head: Pairs) -> bool:
    """Return whether an answer with these headers is of server-sent events."""
    kind = next((value for name, value in head if name == b"content-type"), b"")
    return kind.partition(b";")[0].strip().lower() == b"text/event-stream"


def size(head: Pairs) -> int | None:
    """Return how many bytes an answer with these headers says to have; None where it does not say it."""
    return next((int(value) for name, value in head if name == b"content-length"), None)
