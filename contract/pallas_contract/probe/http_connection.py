"""One HTTP/1.1 connection as a client sees it: bytes out, one answer in, read with distrust."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import httptools

from pallas_contract.documents.reason import Reason

LIMIT = 64 * 1024
"""Most bytes of a body that are read, and of all that is around it: headers, marks of chunks, trailers. For the body a
caller may have another limit."""

BROKEN = Reason("InvalidHttp", "broken HTTP answer")
COMPRESSED = Reason("InvalidHttp", "compressed answer to a request for an uncompressed one")


class Unreachable(Exception):
    """No usable HTTP answer; the text is that of `reason`, fit to be shown."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Status, headers by lower-case name, and the body, up to the limit or to where the reader had enough of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes


IsComplete = Callable[[HttpResponse], bool]
"""Called after the headers and each piece of the body: true once the reader needs no more. Ends endless streams."""


class HttpConnection(asyncio.Protocol):
    """A connection; `exchange` may be called again while it is `usable`: answered to the end, kept, nothing in excess.

    The methods `on_...` are what httptools calls; they raise nothing.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        """Begin unused; `limit` is the most bytes of a body that are read."""
        self.usable = False
        self._limit = limit
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: asyncio.Future[HttpResponse | Exception | None] | None = None
        self._is_complete: IsComplete | None = None
        self._reset(reused=False)

    def _reset(self, *, reused: bool) -> None:
        self._reused = reused
        self._status = 0
        self._received = 0
        self._body_received = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._has_headers = False
        self._complete = False
        self._too_large = False
        self._keep_alive = False
        self._surplus = False

    async def exchange(self, request: bytes, is_complete: IsComplete | None) -> HttpResponse | None:
        """Return the response to `request`; None when a connection that was used before turns out to be closed.

        Raises:
            Unreachable, ConnectionError.
        """
        self._reset(reused=self.usable)
        self.usable = False
        self._is_complete = is_complete
        self._response = asyncio.get_running_loop().create_future()
        cast("asyncio.Transport", self._transport).write(request)
        response = await self._response
        if isinstance(response, Exception):
            raise response
        return response

    def abort(self) -> None:
        """Drop it at once; a clean shutdown would wait for a peer that may be frozen."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if (
            self._response is None or self._response.done()
        ):  # bytes that answer no request: a server that speaks unasked is not to be trusted with another
            self.abort()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._complete:
                self._settle(Unreachable(BROKEN))
                return
            self._surplus = True
        self._settle_if_complete()

    def eof_received(self) -> None:
        # a body without a length ends with the connection (RFC 9112, 6.3)
        if self._has_headers and not {"content-length", "transfer-encoding"} & self._headers.keys():
            self._complete = True
            self._settle_if_complete()

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        closed = self._reused and not self._received
        self._settle(None if closed else error or Unreachable(BROKEN))

    def on_message_begin(self) -> None:
        self._surplus = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_headers:  # a trailer is no header (RFC 9110, 6.5.1), and there may be no end of them
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self._complete:
            self._status = self._parser.get_status_code()
            self._has_headers = True

    def on_body(self, body: bytes) -> None:
        if not self._complete:
            self._body_received += len(body)
            room = self._limit - len(self._body)
            self._body += body[:room]
            self._too_large = self._too_large or len(body) > room

    def on_message_complete(self) -> None:
        if self._status < 200:  # 100 Continue and the like: the answer is still to come
            self._headers = {}
            self._has_headers = False
        elif not self._complete:
            self._complete = True
            self._keep_alive = self._parser.should_keep_alive()

    def _settle_if_complete(self) -> None:
        """Settle the response if there is enough of it, or too much."""
        if not self._has_headers:
            if self._received > LIMIT:
                self._settle(Unreachable(BROKEN))
            return
        # a few bytes may unpack to gigabytes, so nothing is ever unpacked here
        if self._headers.get("content-encoding", "identity") != "identity":
            self._settle(Unreachable(COMPRESSED))
            return
        enough = self._is_complete is not None and self._is_complete(self._answer())
        self._too_large = self._too_large or self._received - self._body_received > self._limit
        if self._too_large and not enough:
            self._settle(Unreachable(Reason("AnswerTooLarge", f"answer larger than {self._limit // 1024} KiB")))
        elif enough or self._complete:
            self.usable = self._keep_alive and not self._surplus and not self._too_large
            self._settle(self._answer())

    def _answer(self) -> HttpResponse:
        return HttpResponse(self._status, self._headers, bytes(self._body))

    def _settle(self, outcome: HttpResponse | Exception | None) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_result(outcome)
