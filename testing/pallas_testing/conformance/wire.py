"""One HTTP request and what came back, kept so that a report can show both."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import httpx

_LARGEST = 8 << 20
"""Bytes of an answer that are read."""
_LINGER = 1.0
"""Seconds in which a stream may end, or say more than it should, after the answer has come."""
_SHOWN = 600
"""Characters of an answer that a report shows."""
_BREAK = re.compile(rb"\r\n|\r|\n")
"""The ends of a line of server-sent events, and no other of those that Unicode has (WHATWG HTML, section 9.2.6)."""
_EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer. `failure` says why there is none; `messages` are those of JSON-RPC, as they came.

    `seconds` end with the result, however long the stream stays open behind it.
    """

    sent: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    seconds: float = 0.0
    failure: str = ""

    @property
    def media_type(self) -> str:
        """The media type without parameters, in lower case."""
        return _media_type(self.headers.get("content-type", ""))

    @property
    def is_stream(self) -> bool:
        """True where the answer came as server-sent events."""
        return self.media_type == _EVENT_STREAM

    @property
    def received(self) -> str:
        """What came back, short enough for a report."""
        if self.failure:
            return self.failure
        text = " ".join(self.body.split())
        head = f"HTTP {self.status} {self.media_type}".rstrip()
        return f"{head} {text[:_SHOWN]}{' ...' if len(text) > _SHOWN else ''}".rstrip()

    @property
    def answer(self) -> Mapping[str, Any]:
        """The message that ends the request, a result or an error; empty where none came."""
        ends = [message for message in self.messages if "result" in message or "error" in message]
        return ends[-1] if ends else {}

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of the answer; empty where there is none, or no object."""
        result = self.answer.get("result")
        return result if isinstance(result, dict) else {}


def objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in an array of JSON; none where it is no array."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def printable(text: str) -> str:
    """Return a text in which control characters, surrogates and all else that is not printable are escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class Wire:
    """Requests to one server. A failure of the network is an exchange like any other."""

    def __init__(
        self, client: httpx.AsyncClient, url: str, *, token: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`token` goes with each request and is in no exchange; `clock` counts seconds.

        An exchange ends after the client's read timeout without a line of `data:`, whatever else is sent.
        """
        self.url = url
        self._client = client
        self._credentials = {"authorization": f"Bearer {token}"} if token else {}
        self._clock = clock

    def beside(self, path: str) -> Wire:
        """Return the wire to another path of the same server, without a token."""
        return Wire(self._client, urljoin(self.url, path), clock=self._clock)

    async def get(self, path: str, accept: str = "*/*") -> Exchange:
        """GET a page beside `url`, without the token: the pages of the contract are open."""
        url = urljoin(_without_slash(self.url), path)
        return await self._exchange("GET", url, f"GET {_path(url)}", {"accept": accept})

    async def post(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> Exchange:
        """POST one message of JSON-RPC to `url`."""
        sent = f"{message['method']} {json.dumps(message.get('params', {}), ensure_ascii=False)}"
        accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        everything = {**accept, **headers, **self._credentials}
        return await self._exchange("POST", self.url, sent, everything, json.dumps(message).encode())

    async def delete(self, headers: Mapping[str, str]) -> Exchange:
        """DELETE `url`: the end of a session."""
        return await self._exchange("DELETE", self.url, "DELETE", {**headers, **self._credentials})

    async def _exchange(self, method: str, url: str, sent: str, headers: Mapping[str, str], *body: bytes) -> Exchange:
        began = self._clock()
        ended: float | None = None
        silence = self._client.timeout.read
        lines: list[str] = []
        try:
            content = body[0] if body else None
            async with (
                asyncio.timeout(silence) as deadline,
                self._client.stream(method, url, headers=headers, content=content) as response,
            ):
                async for line in _lines(response):
                    lines.append(line)
                    if ended is None and _ends(line):
                        ended = self._clock()
                        _renew(deadline, _LINGER)
                    elif ended is None and line.startswith("data:"):
                        _renew(deadline, silence)
        except (TimeoutError, httpx.ReadTimeout):
            if ended is None:
                return Exchange(sent, failure=f"no answer: no message for {silence:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, _TooMuch) as error:  # ValueError: no URL, no header
            return Exchange(sent, failure=f"no answer: {error or type(error).__name__}")
        text = "\n".join(lines)
        known = {key.lower(): value for key, value in response.headers.items()}
        exchange = Exchange(
            sent, response.status_code, known, text, seconds=(self._clock() if ended is None else ended) - began
        )
        return _with_messages(exchange)


def is_url(text: str) -> bool:
    """Return True for an absolute URL of http or https, all of it printable."""
    try:
        parts = urlsplit(text)
        return text.isprintable() and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_slash(url: str) -> str:
    """Return a URL whose path ends with no slash, so that what is beside it does not come beneath."""
    try:
        parts = urlsplit(url)
        return urlunsplit(parts._replace(path=parts.path.rstrip("/")))
    except ValueError:
        return url


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return url


class _TooMuch(Exception):
    """The answer is larger than anything that the contract knows."""


def _renew(deadline: asyncio.Timeout, seconds: float | None) -> None:
    deadline.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the lines of server-sent events as they come, and any other body whole."""
    pieces = _pieces(response)
    if _media_type(response.headers.get("content-type", "")) != _EVENT_STREAM:
        yield _text([piece async for piece in pieces])
        return
    line: list[bytes] = []
    after_return = False
    async for piece in pieces:
        rest = piece[1:] if after_return and piece.startswith(b"\n") else piece
        after_return = piece.endswith(b"\r")
        first, *others = _BREAK.split(rest)
        line.append(first)
        for other in others:
            yield _text(line)
            line = [other]
    if any(line):
        yield _text(line)


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > _LARGEST:
            raise _TooMuch(f"it is larger than {_LARGEST >> 20} MiB")
        if piece:
            yield piece


def _text(pieces: list[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "replace")


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _ends(line: str) -> bool:
    """Return True for an event that ends its request; servers may leave the stream open behind it."""
    if not line.startswith("data:"):
        return False
    message = _json(line.removeprefix("data:"))
    return isinstance(message, dict) and ("result" in message or "error" in message)


def _with_messages(exchange: Exchange) -> Exchange:
    if exchange.is_stream:
        blocks = exchange.body.split("\n\n")
        texts = [[line[5:] for line in block.split("\n") if line.startswith("data:")] for block in blocks]
        values = [_json("\n".join(text)) for text in texts if text]
    else:
        values = [_json(exchange.body)]
    messages = tuple(value for value in values if isinstance(value, dict))
    return Exchange(
        sent=exchange.sent,
        status=exchange.status,
        headers=exchange.headers,
        body=exchange.body,
        messages=messages,
        seconds=exchange.seconds,
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
