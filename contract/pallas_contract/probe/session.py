"""The requests of one probe to one MCP server: headers of both eras, the session, and answers read with distrust."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urljoin

from pallas_contract import __version__
from pallas_contract.documents.health import State
from pallas_contract.documents.reason import INPUT_REFUSED, Reason, unauthorized
from pallas_contract.probe import http_client

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
Era = Literal["2026-07-28", "2025-11-25"]

Bound = Callable[[float], AbstractAsyncContextManager[object]]
"""Raises TimeoutError in what it surrounds once so many seconds have passed."""

ASIDE = 1.0
"""Seconds for what is asked after the state is known: the goodbye, the tools."""
_MAX_TEXT = 500
_DIGITS = 9
"""Digits of a Retry-After that are read: thirty years are enough, and no number is too long to be one."""
_REDIRECTS = 3
"""Most redirects that one request follows."""
_SAME_REQUEST = (307, 308)
"""Redirects that repeat the request as it is (RFC 9110, 15.4)."""
_NOT_NOW = {
    429: Reason("TooManyRequests", "asked to slow down (HTTP 429)"),
    503: Reason("ServiceUnavailable", "cannot answer now (HTTP 503)"),
}
"""It is there and says that it will answer later (table of faults, 15)."""

NOT_MCP = Reason("NotMcp", "not an MCP answer")
CLIENT = {"name": "pallas-probe", "version": __version__}
META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Target:
    """An MCP server to probe. `address` is an IP to connect to instead of resolving the URL's host.

    `deep` asks `get_health`; `tools` asks for the tools as well, which says nothing about the state. `ours` is an agent
    of the fleet: where its MCP endpoint asks for a token, its open page /healthz has the same answer. `sse` is a server
    of the transport of 2024-11-05, which is asked for its stream of events and nothing else. `plain` is what speaks no
    MCP: it is asked with GET, or whether it takes a connection (`tcp://host:port`).

    `lists` asks, in so many seconds more, for the tools and prompts that it says it has: who shakes hands with anybody
    may refuse these. `follow` follows a redirect to another path of the same origin, as clients do.
    """

    url: str
    address: str | None = None
    deep: bool = False
    tools: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    sse: bool = False
    plain: Literal["", "get", "tcp"] = ""
    lists: float = 0.0
    follow: bool = False


class ProbeEnded(Exception):
    """The early end of a probe: `status` is the HTTP status that says so, `wait` its Retry-After in seconds."""

    method = ""
    """The method that was refused after a good handshake."""

    def __init__(self, state: State, reason: Reason, status: int = 0, wait: float = 0.0) -> None:
        super().__init__(reason.message)
        self.state = state
        self.reason = reason
        self.status = status
        self.wait = wait


class Session:
    """The MCP session of one probe with one server: its requests, and the id that a server may have given it."""

    def __init__(self, target: Target, client: http_client.Client, *, keep: bool = False) -> None:
        """`keep` leaves the connection open at the end, for a session that may follow."""
        self.target = target
        self._client = client
        self._keep = keep
        self._id = 0
        self._events_read = 0
        """Bytes of the stream under way whose events were looked at."""
        self.session_id = ""
        self.version = LEGACY
        self.capabilities: Mapping[str, Any] = {}
        """What the server said that it has, once it was asked."""

    async def post(
        self,
        method: str,
        params: dict[str, Any],
        *,
        era: str = "",
        name: str = "",
        last: bool = False,
        again: bool = False,
    ) -> http_client.HttpResponse:
        """POST one JSON-RPC request; `last` when another is not expected to follow, `again` as in `Client.request`.

        Raises:
            ProbeEnded: the status says that no other question will be answered either (401, 403, 429, 5xx, 3xx).
            Closed: as `Client.request`.
        """
        self._id += 1
        self._events_read = 0
        headers = self._headers()
        if era:
            headers |= {"mcp-protocol-version": era, "mcp-method": method} | ({"mcp-name": name} if name else {})
        body = _body(self._id, method, json.dumps(params) if params else "{}", era)
        last = last and not self.session_id and not self._keep  # the goodbye follows, or another probe
        send = functools.partial(
            self._client.request, "POST", headers=headers, body=body, is_complete=self._is_complete, last=last
        )
        response = await send(again=again)
        for _ in range(_REDIRECTS if self.target.follow else 0):
            if response.status not in _SAME_REQUEST or not self._client.redirect(response.headers.get("location", "")):
                break
            response = await send()
        if self.target.follow and 300 <= response.status < 400:
            message = f"HTTP {response.status}, and only redirects within its origin are followed"
            raise ProbeEnded("error", Reason("Redirect", message), response.status)
        raise_for_status(response)
        return response

    async def notify(self, method: str) -> None:
        """Send a notification; whatever the server answers is no matter."""
        body = json.dumps({"jsonrpc": "2.0", "method": method}).encode()
        await self._client.request("POST", headers=self._headers(), body=body)

    async def stream(self) -> http_client.HttpResponse:
        """GET the stream of events, up to the one that says where to post.

        Raises:
            ProbeEnded: as `post`.
        """
        headers = {**self._headers(), "accept": "text/event-stream"}
        response = await self._client.request("GET", headers=headers, is_complete=has_endpoint, last=True)
        raise_for_status(response)
        return response

    async def page(self, path: str) -> http_client.HttpResponse:
        """GET a plain page beside the MCP endpoint, without any credentials."""
        return await http_client.request("GET", urljoin(self.target.url, path), address=self.target.address)

    async def close(self) -> None:
        """Tear down the session, if one was opened (seed 000, Implementation Guidance). A server may refuse.

        Bounded on its own: it also runs after the probe's deadline has passed.
        """
        if not self.session_id:
            return
        headers = self._headers()
        self.session_id = ""
        with contextlib.suppress(http_client.Unreachable, TimeoutError):
            async with asyncio.timeout(ASIDE):
                await self._client.request("DELETE", headers=headers, last=True)

    def answer(self, response: http_client.HttpResponse) -> dict[str, Any]:
        """Return the JSON-RPC answer to the last request; empty when there is none.

        Only an error may come without its id: a server that could not read the request does not know it.
        """
        return self._answer_in(_events(response.body) if _is_stream(response) else [response.body])

    def _answer_in(self, bodies: Sequence[bytes]) -> dict[str, Any]:
        for body in bodies:
            try:
                message = json.loads(body)
            except (ValueError, RecursionError):
                continue
            if not isinstance(message, dict):
                continue
            if "result" in message and message.get("id") == self._id:
                return message
            if "error" in message and message.get("id") in (self._id, None):
                return message
        return {}

    def _is_complete(self, response: http_client.HttpResponse) -> bool:
        # noted as soon as the headers are there: the body may never end, and then nobody would close the session
        self.session_id = self.session_id or response.headers.get("mcp-session-id", "")
        if not _is_stream(response):
            return False
        # each event once: a stream of many that goes on byte by byte would be read anew with each of them
        begin = self._events_read
        end = max(response.body.rfind(b"\n\n", begin) + 2, response.body.rfind(b"\n\r\n", begin) + 3)
        if end <= begin + 2:
            return False
        self._events_read = end
        return bool(self._answer_in(_events(response.body[begin:end])))

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {key.lower(): value for key, value in self.target.headers.items()}
        if self.session_id:
            headers |= {"mcp-session-id": self.session_id, "mcp-protocol-version": self.version}
        return headers


@functools.lru_cache(maxsize=64)
def _body(number: int, method: str, params: str, era: str) -> bytes:
    """Return a JSON-RPC request, `params` being JSON; remembered, since every probe sends the same few."""
    # `params` is text because a dict cannot be the key of a cache.
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": json.loads(params)}
    if era:
        message["params"]["_meta"] = {
            f"{META}protocolVersion": era,
            f"{META}clientCapabilities": {},
            f"{META}clientInfo": CLIENT,
        }
    return json.dumps(message).encode()


def raise_for_status(response: http_client.HttpResponse) -> None:
    """Return where the status leaves something to read.

    Raises:
        ProbeEnded: it says that no other question will be answered either (401, 403, 421, 429, 3xx, 5xx).
    """
    status = response.status
    if status in (401, 403):
        raise ProbeEnded("unauthenticated", unauthorized(status), status)
    if status in _NOT_NOW:
        raise ProbeEnded("degraded", _NOT_NOW[status], status, retry_after(response.headers))
    # The answer of MCP's Python SDK to a Host that is not listed: a guard against DNS rebinding.
    if status == 421:
        raise ProbeEnded("error", Reason("MisdirectedRequest", "refuses this Host header (HTTP 421)"), status)
    if 300 <= status < 400:
        raise ProbeEnded("error", Reason("Redirect", f"HTTP {status}, and redirects are not followed"), status)
    if status >= 500:
        raise ProbeEnded("error", Reason("HttpError", f"HTTP {status}"), status)


def rpc_error(answer: dict[str, Any]) -> Reason:
    """Return what an answer without a usable result says."""
    error = as_object(answer.get("error"))
    if as_object(error.get("data")).get("reason") == INPUT_REFUSED and isinstance(error.get("message"), str):
        return Reason(INPUT_REFUSED, as_text(error["message"]))
    code = error.get("code")
    return Reason("JsonRpcError", as_text(f"JSON-RPC error {code}")) if isinstance(code, int) else NOT_MCP


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a Retry-After asks to wait (RFC 9110, 10.2.3); 0 when none can be understood.

    A time of day is read against the answer's own Date, so that clocks of two hosts need not agree.
    """
    value = headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value[:_DIGITS])
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a container healthcheck rarely gets here

    try:
        gap = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):  # no date; only one has a time zone; a number beyond all dates
        return 0.0
    return max(0.0, gap.total_seconds())


def _is_stream(response: http_client.HttpResponse) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


def has_endpoint(response: http_client.HttpResponse) -> bool:
    """Return whether an answer is a stream with a whole `endpoint` event (2024-11-05, HTTP with SSE)."""
    blocks = response.body.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]
    fields = (line.partition(b":") for block in blocks for line in block.split(b"\n"))
    return _is_stream(response) and any(name == b"event" and text.strip() == b"endpoint" for name, _, text in fields)


def _events(body: bytes) -> list[bytes]:
    """Return the data of each complete server-sent event."""
    # What follows the last empty line is an event that has not wholly arrived.
    blocks = body.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]
    return [
        b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")) for block in blocks
    ]


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """Return foreign text fit to be shown: bounded, encodable (JSON may carry half a surrogate pair), and one line.

    What has no shape of its own becomes a space: line breaks, terminal escapes, marks that reverse what follows.
    """
    if not isinstance(value, str):
        return ""
    text = value[:_MAX_TEXT].encode("utf-8", "replace").decode()
    return text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)


def as_texts(value: Any) -> list[str]:
    """Return the texts of a JSON array; none of anything else."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
