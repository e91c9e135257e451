"""How large an answer of a model's provider may be.

The SDKs of OpenAI and Anthropic read what comes, and hold it several times over: a provider, or what answers in its
place, could end the agent in its container. Here the turn fails instead. Google's and Amazon's packages bring HTTP
clients of their own, which nothing is known to limit.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import httpx2
import structlog
from fast_agent.core.exceptions import FastAgentError

from pallas_agent_runtime.engine.answers.limits import LEAST, hear, in_words
from pallas_agent_runtime.engine.patches import replaced
from pallas_contract.json_values import has_more_values

log = structlog.get_logger(__name__)

MOST_VALUES = 20_000
"""Values of a body or an event, most of which one has where it names sources: 10,000 calls of tools take an SDK 2 s."""
MOST_LINES = 1_000
"""Lines of an event, which one has where its JSON is written with indents. Anthropic's SDK joins them one by one."""
_SDKS = frozenset({"openai", "anthropic"})
"""Packages whose clients ask models; what a project's own code reads with others is its own affair."""
_PART = 2
"""Of the limit a body may have this part, and so may all events of a stream, beyond what each has around its text.

A character that takes four bytes has all of a text take four for each, and there are three copies of it.
"""
_AROUND = 200
"""Bytes of an event of one token that are none of its text: so 32 MiB are 110,000 to 140,000 tokens."""
_BETWEEN = re.compile(rb"\n\n|\r\r|\r\n\r\n")
"""What both SDKs take for the end of an event."""


class AnswerTooLarge(FastAgentError):
    """An answer with more than is read."""


@contextmanager
def bounded(limit: int) -> Iterator[None]:
    """Have no answer of a provider be longer than `limit` bytes meanwhile, unpacked or not.

    A stream may have as many, and the half but for `_AROUND` of each event; a body the half; an error, whose text is
    told, `LEAST`. A body and an event may have `MOST_VALUES` values, and an event `MOST_LINES` lines.
    """
    limit = max(limit, LEAST)
    send = httpx2.AsyncClient.send

    @functools.wraps(send)
    async def bounded_send(client: httpx2.AsyncClient, *args: Any, **kwargs: Any) -> httpx2.Response:
        if _SDKS.intersection(cls.__module__.partition(".")[0] for cls in type(client).__mro__) and not any(
            isinstance(hook, _Bind) for hook in client.event_hooks["response"]
        ):
            hear(client, _Bind(limit))
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
        answer.limit = self._limit


class _Answer(httpx2.Response):
    """A response that is read as far as `limit`. Of a stream an SDK gets whole events, which it looks through once."""

    limit: int
    _whole = False
    _said = 0

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
        events = _Events(self)
        size = 0
        async with aclosing(super().aiter_bytes(chunk_size)) as pieces:
            async for piece in pieces:
                size += len(piece)
                self.check(size, self._most)
                text = piece if self._whole else events.complete(piece)
                await asyncio.sleep(0)  # what has come already would be read without a pause, whoever else waits
                if text:
                    yield text
        if rest := events.rest():  # an SDK takes it for an event
            yield rest

    async def aiter_raw(self, chunk_size: int | None = None) -> AsyncGenerator[bytes]:
        size = 0
        async with aclosing(super().aiter_raw(chunk_size)) as pieces:
            async for piece in pieces:
                size += len(piece)
                self.check(size, self._most)
                yield piece

    def check_event(self, event: bytes) -> None:
        """Raise AnswerTooLarge where the event is. Comments do not count: a quote in one would hide what follows."""
        self._said += max(len(event) - _AROUND, 0)
        self.check(self._said, self.limit // _PART)
        lines = event.splitlines()
        self.check(len(lines), MOST_LINES, "lines")
        self._check_values(b"\n".join(line[5:] for line in lines if line.startswith(b"data:")))

    def check(self, size: int, most: int, unit: str = "bytes") -> None:
        """Raise AnswerTooLarge where `size` is more than `most`."""
        if size > most:
            raise self._too_large(in_words(most) if unit == "bytes" else f"{most} {unit}")

    def _check_values(self, text: bytes) -> None:
        # JSON has no NUL but in an encoding of two or four bytes, of which one may look like a quote
        if has_more_values(text, MOST_VALUES) or b"\0" in text:
            raise self._too_large(f"{MOST_VALUES} values")

    @property
    def _most(self) -> int:
        if self.is_error:
            return LEAST
        return self.limit // _PART if self._whole else self.limit

    def _too_large(self, bound: str) -> AnswerTooLarge:
        log.warning("answer_too_large", server=self.url.host, limit=bound)
        return AnswerTooLarge(f"the model's provider answered with more than {bound}")


class _Events:
    """The events of a stream, as it comes."""

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._text = bytearray()
        self._lines = 0

    def complete(self, piece: bytes) -> bytes:
        """Return the events that end in `piece`, and keep the one that begins there.

        Raises:
            AnswerTooLarge: one is.
        """
        begun = max(len(self._text) - 3, 0)  # the end of an event may come in two pieces
        self._text += piece
        end = 0
        for between in _BETWEEN.finditer(self._text, begun):
            self._answer.check_event(bytes(memoryview(self._text)[end : between.end()]))
            end = between.end()
        events = bytes(memoryview(self._text)[:end])
        del self._text[:end]
        self._lines = (0 if end else self._lines) + _lines(self._text if end else piece)
        self._answer.check(self._lines, 2 * MOST_LINES, "lines")
        return events

    def rest(self) -> bytes:
        """Return what comes behind the last event.

        Raises:
            AnswerTooLarge: it is.
        """
        rest = bytes(self._text)
        self._answer.check_event(rest)
        return rest


def _lines(text: bytes | bytearray) -> int:
    return text.count(b"\n") + text.count(b"\r")
