"""One HTTP/1.1 connection as a client sees it: bytes out, one answer in, read with distrust."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import httptools

from pallas_contract.documents.reason import Reason

LIMIT = 64 * 1024
"""Most bytes of a body that are read, and of all that is around it: headers, marks of chunks, trailers."""

BROKEN = Reason("InvalidHttp", "broken HTTP answer")
_COMPRESSED = Reason("InvalidHttp", "compressed answer to a request for an uncompressed one")
_TOO_LARGE = Reason("AnswerTooLarge", f"answer larger than {LIMIT // 1024} KiB")


class Unreachable(Exception):
    """No usable HTTP answer; the text is that of `reason`, fit to be shown."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers by lower-case name, and the body (up to the limit, or up to where the reader had enough)."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Enough = Callable[[Reply], bool]
"""Asked after the headers and each piece of the body: does the reader have what it wants? Ends endless streams."""


class Wire(asyncio.Protocol):
    """A connection. `exchange` may be called again while it is `usable`: answered to the end, kept, nothing left over.

    The methods `on_...` are what httptools calls; they raise nothing.
    """

    def __init__(self) -> None:
        self.usable = False
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Reply | Exception | None] | None = None
        self._enough: Enough | None = None
        self._begin(again=False)

    def _begin(self, *, again: bool) -> None:
        self._again = again
        self._status, self._received, self._carried = 0, 0, 0
        self._fields: dict[str, str] = {}
        self._body = bytearray()
        self._headed = self._complete = self._too_large = self._kept = self._surplus = False

    async def exchange(self, sent: bytes, enough: Enough | None) -> Reply | None:
        """The answer to `sent`; None when a connection that was used before turns out to be closed.

        Raises:
            Unreachable, ConnectionError.
        """
        again, self.usable = self.usable, False
        self._begin(again=again)
        self._enough, self._answer = enough, asyncio.get_running_loop().create_future()
        cast("asyncio.Transport", self._transport).write(sent)
        answer = await self._answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    def abort(self) -> None:
        """Drop it at once; a clean shutdown would wait for a peer that may be frozen."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():  # nobody asked
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
        self._judge()

    def eof_received(self) -> None:
        if self._headed and not {"content-length", "transfer-encoding"} & self._fields.keys():
            self._complete = True
            self._judge()

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        closed = self._again and not self._received
        self._settle(None if closed else error or Unreachable(BROKEN))

    def on_message_begin(self) -> None:
        self._surplus = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._headed:  # a trailer is no header (RFC 9110, 6.5.1), and there may be no end of them
            self._fields[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if not self._complete:
            self._status, self._headed = self._parser.get_status_code(), True

    def on_body(self, body: bytes) -> None:
        if not self._complete:
            self._carried += len(body)
            room = LIMIT - len(self._body)
            self._body += body[:room]
            self._too_large = self._too_large or len(body) > room

    def on_message_complete(self) -> None:
        if self._status < 200:  # 100 Continue and the like: the answer is still to come
            self._fields, self._headed = {}, False
        elif not self._complete:
            self._complete, self._kept = True, self._parser.should_keep_alive()

    def _judge(self) -> None:
        """Settle the answer if there is enough of it, or too much."""
        if not self._headed:
            if self._received > LIMIT:
                self._settle(Unreachable(BROKEN))
            return
        if self._fields.get("content-encoding", "identity") != "identity":
            self._settle(Unreachable(_COMPRESSED))
            return
        reply = Reply(self._status, self._fields, bytes(self._body))
        enough = self._enough is not None and self._enough(reply)
        self._too_large = self._too_large or self._received - self._carried > LIMIT
        if self._too_large and not enough:
            self._settle(Unreachable(_TOO_LARGE))
        elif enough or self._complete:
            self.usable = self._kept and not self._surplus and not self._too_large
            self._settle(reply)

    def _settle(self, answer: Reply | Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
