"""How large an answer of a model's provider may be.

The SDKs of OpenAI and Anthropic read what comes, and hold it several times over: a provider, or what answers in its
place, could end the agent in its container. Here the turn fails instead. Google's and Amazon's packages bring HTTP
clients of their own, which nothing is known to limit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import httpx2
import structlog
from fast_agent.core.exceptions import FastAgentError

from pallas_agent_runtime.engine.answers.limits import LEAST, MOST_VALUES
from pallas_agent_runtime.engine.patches import replaced
from pallas_contract.json_values import has_more_values

log = structlog.get_logger(__name__)

_SDKS = frozenset({"openai", "anthropic"})
"""Packages whose clients ask models; what a project's own code reads with others is its own affair."""
_STREAM = 2
"""Times the limit that all events of a stream may have: 160,000 tokens, of which each is an event of 400 bytes."""
_BETWEEN = re.compile(rb"\n\n|\r\r|\r\n\r\n")
"""What both SDKs take for the end of an event."""


class AnswerTooLarge(FastAgentError):
    """An answer with more than is read."""


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Have no answer of a provider be longer than `limit` bytes meanwhile, unpacked or not.

    A stream may have twice as many, of which `limit` in one event. A body, and an event, may have `MOST_VALUES` values;
    an error `LEAST` bytes, since its text is told.
    """
    limit = max(limit, LEAST)
    send = httpx2.AsyncClient.send

    @functools.wraps(send)
    async def bounded_send(client: httpx2.AsyncClient, *args: Any, **kwargs: Any) -> httpx2.Response:
        hooks = client.event_hooks
        if _SDKS.intersection(cls.__module__.partition(".")[0] for cls in type(client).__mro__) and not any(
            isinstance(hook, _Bind) for hook in hooks["response"]
        ):
            client.event_hooks = {**hooks, "response": [*hooks["response"], _Bind(limit)]}
        return await send(client, *args, **kwargs)

    with replaced(httpx2.AsyncClient, "send", bounded_send):
        yield


class _Bind:
    """Has each response of a client, also one that leads elsewhere, be bounded."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    async def __call__(self, response: httpx2.Response) -> None:
        response.__class__ = _Answer  # see limits.py
        answer: Any = response
        answer.limit = LEAST if response.is_error else self._limit


class _Answer(httpx2.Response):
    """A response that is read as far as `limit`."""

    limit: int
    _whole = False

    async def aread(self) -> bytes:
        """Return the body.

        Raises:
            AnswerTooLarge: it is.
        """
        self._whole = True
        body = await super().aread()
        self._check_values(body)
        return body

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        event = bytearray()
        size = 0
        async with aclosing(super().aiter_bytes(chunk_size)) as pieces:
            async for piece in pieces:
                size += len(piece)
                self._check(size, self._most)
                if not self._whole:
                    self._follow(event, piece)
                yield piece
        self._check_values(bytes(event))  # an SDK takes the rest for an event

    async def aiter_raw(self, chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        size = 0
        async with aclosing(super().aiter_raw(chunk_size)) as pieces:
            async for piece in pieces:
                size += len(piece)
                self._check(size, self._most)
                yield piece

    def _follow(self, event: bytearray, piece: bytes) -> None:
        """Add what has come to the event that it continues, and leave there the one that it begins."""
        begun = max(len(event) - 3, 0)  # the end of one may come in two pieces
        event += piece
        start = 0
        for between in _BETWEEN.finditer(event, begun):
            self._check(between.end() - start, self.limit)
            self._check_values(bytes(memoryview(event)[start : between.end()]))
            start = between.end()
        del event[:start]
        self._check(len(event), self.limit)

    def _check_values(self, text: bytes) -> None:
        if has_more_values(text, MOST_VALUES):
            raise self._too_large(MOST_VALUES, "values")

    def _check(self, size: int, most: int) -> None:
        if size > most:
            raise self._too_large(most)

    @property
    def _most(self) -> int:
        return self.limit if self._whole else _STREAM * self.limit

    def _too_large(self, most: int, unit: str = "bytes") -> AnswerTooLarge:
        if unit == "bytes" and most % (1 << 20) == 0:
            most, unit = most >> 20, "MiB"
        log.warning("answer_too_large", server=self.url.host, limit=f"{most} {unit}")
        return AnswerTooLarge(f"the model's provider answered with more than {most} {unit}")
