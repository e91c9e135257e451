"""`get_health` asked again: the transport's own answer to the same question, for as long as the health is the same.

A registry, a gateway and every caller ask it every few seconds, with the same bytes but for the number of the request.
What the MCP SDK has once taken and answered it would take and answer again; going through all of it costs four times as
much as everything else. So the answer is not made here, and nothing is judged here that the transport has not judged.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_contract.documents import health
from pallas_contract.documents.health import Health

LARGEST = 4 << 10
"""Bytes of a question, and of its headers, beyond which it is not remembered."""
MOST = 16
"""Questions that are remembered: their senders differ in their headers and in what they tell of themselves."""

_ID = re.compile(rb'"id": ?(0|[1-9][0-9]{0,14})(?=[,}])')
_HEAD = b'{"jsonrpc":"2.0","id":%b,"result":'
_VERSION = b"mcp-protocol-version"
_MODERN = frozenset(version.encode() for version in MODERN_PROTOCOL_VERSIONS)

_Headers = tuple[tuple[bytes, bytes], ...]
_Question = tuple[_Headers, bytes, bytes]
"""Headers without the length, and the body before and after the number of the request."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of the transport to a question: what the health was then, the headers, the body after its id."""

    health: Health
    headers: _Headers
    rest: bytes


class RepeatedHealth:
    """ASGI around the transport, inside of everything that decides who may ask."""

    def __init__(self, app: ASGIApp, current: Callable[[], Health], count: Callable[[float], None]) -> None:
        """Begin with nothing to remember. `current` is the health now; `count` is told the seconds of each answer."""
        self._app = app
        self._current = current
        self._count = count
        self._answers: dict[_Question, _Answer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        pieces, body = await _read(receive)

        async def again() -> Message:
            return pieces.popleft() if pieces else await receive()

        number = _number(body)
        if number is None:
            await self._app(scope, again, send)
            return
        question = (_told(scope), body[: number.start(1)], body[number.end(1) :])
        answer = self._answers.get(question)
        if answer is not None and answer.health == self._current():
            await _give(answer, number[1], send)
            self._count(time.perf_counter() - started)
        elif answer is not None or _is_plain(scope, body, number[1]):
            await self._app(scope, again, self._learning(question, number[1], send))
        else:
            await self._app(scope, again, send)

    def _learning(self, question: _Question, number: bytes, send: Send) -> Send:
        """Return a way to send that remembers the answer, unless the health is another one by then."""
        before = self._current()
        head = _HEAD % number
        headers: _Headers = ()

        async def watched(message: Message) -> None:
            nonlocal headers
            if message["type"] == "http.response.start" and message["status"] == 200:
                headers = tuple(field for field in message["headers"] if field[0] != b"content-length")
            elif _is_whole(message, head, headers) and self._current() == before:
                self._keep(question, _Answer(before, headers, message["body"][len(head) :]))
            await send(message)

        return watched

    def _keep(self, question: _Question, answer: _Answer) -> None:
        self._answers.pop(question, None)
        while len(self._answers) >= MOST:
            del self._answers[next(iter(self._answers))]
        self._answers[question] = answer


async def _give(answer: _Answer, number: bytes, send: Send) -> None:
    body = _HEAD % number + answer.rest
    headers = [(b"content-length", b"%d" % len(body)), *answer.headers]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _read(receive: Receive) -> tuple[deque[Message], bytes]:
    """Return the messages of the body and the body; empty where it is larger than what is remembered."""
    pieces = deque([await receive()])
    size = len(pieces[0].get("body", b""))
    while pieces[-1].get("more_body", False) and size <= LARGEST:
        pieces.append(await receive())
        size += len(pieces[-1].get("body", b""))
    return pieces, b"".join(piece.get("body", b"") for piece in pieces) if size <= LARGEST else b""


def _is_whole(message: Message, head: bytes, headers: _Headers) -> bool:
    """Return whether this is all of a result in JSON."""
    last = not message.get("more_body", False) and (b"content-type", b"application/json") in headers
    return last and message.get("body", b"").startswith(head)


def _told(scope: Scope) -> _Headers:
    return tuple(field for field in scope["headers"] if field[0] != b"content-length")


def _number(body: bytes) -> re.Match[bytes] | None:
    """Return where the number of the request is; None where there may be another thing of its name, however spelled."""
    return _ID.search(body) if body.count(b'"id"') == 1 and b"\\" not in body else None


def _is_plain(scope: Scope, body: bytes, number: bytes) -> bool:
    """Return whether this asks for the health in the era without sessions, as no part of a trace."""
    told = _told(scope)
    traced = b"traceparent" in body or any(name == b"traceparent" for name, _ in told)
    modern = any(name == _VERSION and value in _MODERN for name, value in told)
    if traced or not modern or sum(len(name) + len(value) for name, value in told) > LARGEST:
        return False
    try:
        message: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return False
    params = message.get("params")
    asks = isinstance(params, dict) and params.get("name") == health.TOOL and not params.get("arguments")
    return asks and type(message.get("id")) is int and message["id"] == int(number)
