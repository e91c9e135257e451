"""The answer to one request: that of an agent as it comes, or an error of the gateway's own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from starlette.types import Send

from pallas_gateway.data_plane import errors
from pallas_gateway.data_plane.errors import Reason
from pallas_gateway.data_plane.headers import Pairs

_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
"""Ends of a server-sent event (WHATWG HTML, 9.2.5)."""
REFUSAL_SECONDS = 5.0
"""Seconds that a client has to take an error."""


class Refused(Exception):
    """A request that gets an error of the gateway's; `code` is JSON-RPC's where `reason` does not say it.

    `retry_after` is in seconds, and stands in a header too; `data` has more for the error's.
    """

    def __init__(
        self,
        reason: Reason,
        text: str,
        *,
        status: int,
        request_id: str | int | None = None,
        code: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        retry_after: int | None = None,
        data: Mapping[str, str | int] | None = None,
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.status = status
        self.id = request_id
        self.code = code
        self.headers = headers
        self.data = dict(data or {})
        if retry_after is not None:
            self.data["retry_after"] = retry_after
            self.headers = (*headers, (b"retry-after", str(retry_after).encode()))

    def body(self) -> bytes:
        """Return the JSON-RPC error."""
        return errors.error(self.reason, str(self), self.id, code=self.code, data=self.data)


class Answer:
    """ASGI's `send` of one request; `status` is 0 until its head is sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self._stream = False
        self._tail = b"\n\n"

    async def whole(self, status: int, headers: Pairs, body: bytes) -> None:
        """Send an answer that is complete."""
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, status: int, headers: Pairs, *, stream: bool) -> None:
        """Send the head of an answer; `stream` says that server-sent events follow."""
        self.status = status
        self._stream = stream
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, data: bytes) -> None:
        """Send a part of the body; waits while the client does not read."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        # a call that ends while the client does not read has not sent it
        self._tail = (self._tail + data)[-4:]

    async def end(self) -> None:
        """Send the end of the body."""
        await self._send({"type": "http.response.body", "body": b""})

    async def refuse(self, refused: Refused, *, seconds: float = REFUSAL_SECONDS) -> None:
        """Send the error, in an event stream that has begun as its last event.

        Where neither is possible any more, or the client does not read for `seconds`, nothing is sent: the server then
        cuts the connection, and no client takes half an answer for a whole one.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._refuse(refused)

    async def _refuse(self, refused: Refused) -> None:
        body = refused.body()
        if not self.status:
            head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await self.whole(refused.status, [*head, *refused.headers], body)
        elif self._stream and refused.id is not None and self._tail.endswith(_EVENT_ENDS):
            await self.piece(errors.event(body))
            await self.end()
