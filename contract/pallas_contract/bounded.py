"""How much a server reads before it knows what is asked: uvicorn's HTTP protocol with bounded heads, for both services.

Neither uvicorn's httptools protocol nor llhttp bounds them; only the extras `registry` and `agent` bring uvicorn along.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD = 64 << 10
"""Most bytes of a request's URL, headers and trailers together, without what separates them."""

_TOO_LARGE = b"request header fields too large\n"
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_TOO_LARGE), _TOO_LARGE)
)


class _TooLarge(Exception):
    """Raised in a callback, it ends the parser's work: httptools makes a parser error of it."""


class BoundedProtocol(HttpToolsProtocol):
    """Answers 431 and hangs up where a head goes beyond `HEAD`.

    httptools gives a header only when it is complete, so bytes in which nothing was completed are counted too: of those
    no more than `HEAD` and what two reads of a socket bring is ever kept.
    """

    _head = 0
    _unfinished = 0
    _progress = False

    def data_received(self, data: bytes) -> None:
        self._progress = False
        super().data_received(data)
        self._unfinished = 0 if self._progress else self._unfinished + len(data)
        if self._unfinished > HEAD and not self.transport.is_closing():
            self._refuse()

    def send_400_response(self, msg: str) -> None:
        if self._head > HEAD:
            self._refuse()
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        self._head, self._progress = 0, True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._progress = True
        super().on_body(body)

    def _count(self, size: int) -> None:
        self._head += size
        self._progress = True
        if self._head > HEAD:
            raise _TooLarge

    def _refuse(self) -> None:
        self.transport.write(_REFUSAL)
        self.transport.close()
