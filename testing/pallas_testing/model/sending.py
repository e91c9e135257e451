"""One answer on its way: in pieces, at a pace, cut in the middle, or never; until its caller hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from starlette.types import Receive, Send

from pallas_testing.model.exchange import Answer
from pallas_testing.model.wire.sse import Event


class Sender:
    """The answer to one request whose body has been read.

    Args:
        closing: set when the server ends, so that nothing waits any longer.
    """

    def __init__(self, receive: Receive, send: Send, closing: asyncio.Event) -> None:
        self._receive = receive
        self._send = send
        self._closing = closing
        self._gone: list[asyncio.Task[Any]] = []
        self.started = False
        self.complete = False

    async def __aenter__(self) -> Self:
        self._gone = [asyncio.create_task(self._hung_up()), asyncio.create_task(self._closing.wait())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._gone:
            task.cancel()
        await asyncio.gather(*self._gone, return_exceptions=True)

    async def json(self, status: int, body: Mapping[str, Any], retry_after: float | None = None) -> None:
        """Send a whole answer."""
        extra = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        data = json.dumps(body, ensure_ascii=False).encode()
        await self.start(status, {"content-type": "application/json", "content-length": str(len(data)), **extra})
        await self.end(data)

    async def whole(self, body: Mapping[str, Any], answer: Answer, tokens: int) -> None:
        """Send an answer of so many tokens in one piece, after the time they take; half of it where it is cut."""
        sent = tokens if answer.cut_after is None else min(answer.cut_after, tokens)
        if not await self.pause(answer.per_token * sent):
            return
        if answer.cut_after is None:
            await self.json(200, body)
            return
        data = json.dumps(body, ensure_ascii=False).encode()
        await self.start(200, {"content-type": "application/json", "content-length": str(len(data))})
        await self.piece(data[: len(data) // 2])

    async def stream(self, events: Iterable[Event], answer: Answer) -> None:
        """Send an answer as events, each piece after its time, as far as it is not cut."""
        tokens = 0
        await self.start(200, {"content-type": "text/event-stream", "cache-control": "no-cache"})
        for event in events:
            if event.token:
                if tokens == answer.cut_after or not await self.pause(answer.per_token):
                    return
                tokens += 1
            await self.piece(event.encode())
        if answer.cut_after is None:
            await self.end()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of an answer."""
        self.started = True
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def piece(self, data: bytes) -> None:
        """Send a part of the body; where no end follows, the server closes the connection."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the end of the body."""
        await self._send({"type": "http.response.body", "body": data})
        self.complete = not self.gone

    async def pause(self, seconds: float | None) -> bool:
        """Wait, None for ever; return whether the caller is still there."""
        if seconds != 0:
            await asyncio.wait(self._gone, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return not self.gone and not self._closing.is_set()

    @property
    def gone(self) -> bool:
        """Return whether the caller has hung up."""
        return self._gone[0].done()

    async def _hung_up(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
