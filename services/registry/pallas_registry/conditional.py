"""304 in the parser's callback: who asks again for what has not changed costs no task and no ASGI messages.

That is what pollers do, and what makes 304 more than twice as fast as 200 (benchmarks/registry_catalogue.py). Only
answers without a body are given here: bodies need the flow control that uvicorn's request cycle has. Whatever is not
plain takes the long way, to the same answer.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from pallas_contract.bounded import BoundedProtocol
from pallas_registry.prebuilt import Document, Find, matches


class _Answered:
    """Stands for uvicorn's request cycle where the answer has been sent: all that follows of the request is dropped."""

    response_complete = True
    message_event = asyncio.Event()


class Conditional(BoundedProtocol):
    """uvicorn's protocol with a short way to 304 for what `find` knows.

    One callback is changed, and the common request pays a look at its headers for it.
    """

    find: ClassVar[staticmethod[[str, str, bytes], Document | None]]

    def on_headers_complete(self) -> None:
        for name, value in self.headers:
            if name == b"if-none-match":
                unchanged = self._unchanged(value)
                break
        else:
            unchanged = None
        if unchanged is None:
            super().on_headers_complete()
            return
        self.cycle = _Answered  # type: ignore[assignment] # what uvicorn asks of a cycle that is over
        default = [b"%b: %b\r\n" % field for field in self.server_state.default_headers]
        self.transport.write(b"".join((b"HTTP/1.1 304 Not Modified\r\n", *default, unchanged.head, b"\r\n")))
        self.on_response_complete()

    def _unchanged(self, tag: bytes) -> Document | None:
        """The document that the reader already has, if that can be said at once and in turn."""
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting or self.flow.write_paused or not self.parser.should_keep_alive() or self.parser.should_upgrade():
            return None
        if self.parser.get_method() not in (b"GET", b"HEAD"):
            return None
        path, _, query = self.url.partition(b"?")
        found = self.find("GET", path.decode("latin-1"), query)
        if found is None or found.status != 200 or not matches(found.etag, [tag.decode("latin-1")]):
            return None
        return found


def protocol(find: Find) -> type[Conditional]:
    """The class for `uvicorn.Config(http=...)`."""
    return type("Bound", (Conditional,), {"find": staticmethod(find)})
