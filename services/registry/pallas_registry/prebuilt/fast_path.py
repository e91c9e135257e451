"""Ready-made documents in the parser's callback: the common GET costs no task and no ASGI messages.

Who polls sends the same bytes again and again, so the answer to the last request of a connection, 200 or 304, is given
again, unparsed, as long as the document is the same (benchmarks/registry_catalogue.py). Whatever is not plain takes the
long way, to the same answer: also what is made when it is asked for, and all but the first of requests that come at
once, so that other connections have their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from pallas_registry.prebuilt.documents import Document, matches
from pallas_service.http.protocol import BoundedProtocol

REMEMBERED = 2048
"""Most bytes of a request that a connection remembers."""

Ready = Callable[[str], Document | None]
"""The document of a path, whatever the query, if it is kept ready: never one that is made for the asking."""

_WHOLE = b"HTTP/1.1 200 OK\r\n"
_UNCHANGED = b"HTTP/1.1 304 Not Modified\r\n"


class _Answered:
    """Stands for uvicorn's request cycle where the answer has been sent: all that follows of the request is dropped."""

    response_complete = True
    message_event = asyncio.Event()


class FastPathProtocol(BoundedProtocol):
    """uvicorn's protocol with a short way to the documents that are kept; other requests pay a look for it.

    A body is handed over whole, as uvicorn does: once the connection holds more than it should, the long way waits.
    """

    ready: ClassVar[staticmethod[[str], Document | None]]
    defaults: ClassVar[tuple[list[tuple[bytes, bytes]] | None, bytes]] = (None, b"")
    """uvicorn's own headers, another list each second, and what they are on the wire."""

    _open = _begun = 0
    """Requests that have begun and are not read to their end; those that began in the bytes at hand."""
    _answered: tuple[str, Document, bool] | None = None
    """Path, document and whether it was sent whole, of an answer given in the bytes at hand."""
    _again: tuple[bytes, str, Document, bool] | None = None
    """The bytes of the last request, if it was one whole request that was answered here; then as `_answered`."""
    _repeated = 0.0
    """When that request came again, by the loop's clock."""

    def data_received(self, data: bytes) -> None:
        if self._again is not None and data == self._again[0] and not self.flow.write_paused:
            _, path, document, whole = self._again
            if self.ready(path) is document:
                self._repeated = self.loop.time()  # setting a timer would cost as much as all the rest
                self.server_state.total_requests += 1
                self._write(document, whole=whole)
                return
        whole = not self._open and not self._backlog
        self._begun = 0
        self._answered = self._again = None
        super().data_received(data)
        self._remember(data, whole=whole)

    def _remember(self, data: bytes, *, whole: bool) -> None:
        """`whole` says that no request was half read before `data`."""
        if self._answered and whole and self._begun == 1 and not self._open and len(data) <= REMEMBERED:
            self._again = (data, *self._answered)

    def timeout_keep_alive_handler(self) -> None:
        remaining = self._repeated + self.timeout_keep_alive - self.loop.time()
        if remaining > 0 and not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(remaining, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def _idle_since(self) -> float:
        return max(self._repeated, super()._idle_since())

    def on_message_begin(self) -> None:
        self._open += 1
        self._begun += 1
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._open -= 1
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        match = self._plain()
        tag = next((value for name, value in self.headers if name == b"if-none-match"), None) if match else None
        if match is None or (tag is not None and not matches(match[1].etag, [tag.decode("latin-1")])):
            super().on_headers_complete()
            return
        document = match[1]
        self.cycle = _Answered  # type: ignore[assignment] # what uvicorn asks of a cycle that is over
        self._answered = (*match, tag is None)
        self._write(document, whole=tag is None)
        self.on_response_complete()

    def _write(self, document: Document, *, whole: bool) -> None:
        if whole:
            self.transport.write(self._fields(_WHOLE, document.full))
            self.transport.write(document.body)
        else:
            self.transport.write(self._fields(_UNCHANGED, document.head))

    def _plain(self) -> tuple[str, Document] | None:
        """Return the path and its document, if the request can be answered at once and in turn."""
        # of requests sent without waiting only the first is answered at once
        if self._begun > 1:
            return None
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting or self.flow.write_paused or not self.parser.should_keep_alive() or self.parser.should_upgrade():
            return None
        if self.parser.get_method() != b"GET" or self.parser.get_http_version() != "1.1":
            return None
        # a path that has to be decoded is for the application, which does it once
        if b"%" in self.url or b"#" in self.url:
            return None
        path = self.url.partition(b"?")[0].decode("latin-1")
        document = self.ready(path)
        return (path, document) if document is not None and document.status == 200 else None

    def _fields(self, status: bytes, fields: bytes) -> bytes:
        headers, default = FastPathProtocol.defaults
        if headers is not self.server_state.default_headers:
            headers = self.server_state.default_headers
            default = b"".join(b"%b: %b\r\n" % field for field in headers)
            FastPathProtocol.defaults = headers, default
        return b"".join((status, default, fields, b"\r\n"))


def protocol(ready: Ready) -> type[FastPathProtocol]:
    """Return the class for `uvicorn.Config(http=...)`."""
    members: dict[str, Any] = {"ready": staticmethod(ready)}
    return type("Bound", (FastPathProtocol,), members)
