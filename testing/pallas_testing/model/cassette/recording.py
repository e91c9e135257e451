"""A real provider behind the port of the scripted model: requests go on to it, and what they mean is written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from starlette.requests import Request as HttpRequest

from pallas_testing.model.cassette import recorded
from pallas_testing.model.cassette.secrets import Scrubber
from pallas_testing.model.exchange import CannotFail, Failure, Reply, Request
from pallas_testing.model.sending import Sender
from pallas_testing.model.wire import Api, sse

_HOP = {"accept-encoding", "connection", "content-length", "host", "keep-alive", "te", "transfer-encoding", "upgrade"}
"""Headers of one connection, which do not go on."""


class Recorder:
    """A backend that asks the provider at `base_url`, with the key that the caller sends."""

    def __init__(
        self, base_url: str, path: Path, report: Callable[[str], None], http: httpx.AsyncClient | None = None
    ) -> None:
        """`report` is told of what could not be recorded; `path` is written after each answer."""
        self.models: list[str] = []
        self.failures = 0
        """Calls that could not be recorded."""
        self._base_url = base_url
        self._path = path
        self._report = report
        self._http = http or httpx.AsyncClient(timeout=600)
        self._scrubber = Scrubber(os.environ)
        self._agents: dict[str, Any] = {}
        self._exchanges: dict[int, dict[str, Any]] = {}
        self._next = 0

    @property
    def outage(self) -> None:
        return None

    def fail(self, outage: Failure | None) -> None:
        """Refuse an outage, and let the end of one pass.

        Raises:
            CannotFail: only the provider itself can be down.
        """
        if outage is not None:
            raise CannotFail("the model records a provider: only a script or a cassette can be had to fail")

    def refuse(self, what: str) -> None:
        """Say that a call is none that could be recorded."""
        self.failures += 1
        self._report(self._scrubber.text(what))

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._http.aclose()

    async def respond(self, api: Api, request: Request, http: HttpRequest, sender: Sender) -> None:
        """Send what the provider answers, as it comes, and write down what it means."""
        url = target(self._base_url, http.url.path, http.url.query)
        self._scrubber.learn(http.headers, url)
        self._scrubber.learn({}, self._base_url)
        number = self._next
        self._next += 1
        headers = {name: value for name, value in http.headers.items() if name not in _HOP}
        try:
            body = await http.body()
            async with self._http.stream(
                "POST", url, content=body, headers={**headers, "accept-encoding": "identity"}
            ) as answer:
                data = await _passed_on(answer, sender)
                self._write(number, request, read(api, answer, data))
        except httpx.HTTPError as error:
            self.refuse(f"not recorded: {self._base_url}: {error or type(error).__name__}")
            if not sender.started:
                message = f"the provider does not answer: {type(error).__name__}"
                await sender.json(502, api.failure(Failure(502, message)))
        except OSError as error:
            self.refuse(f"not recorded: {error.filename or self._path}: {(error.strerror or str(error)).lower()}")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            self.refuse(f"not recorded: the provider's answer cannot be read: {type(error).__name__}: {error}")

    def _write(self, number: int, request: Request, outcome: Reply | Failure) -> None:
        self._exchanges[number] = recorded.record(self._agents, request, outcome)
        exchanges = [self._exchanges[index] for index in sorted(self._exchanges)]
        text = recorded.dump(self._scrubber.data(self._agents), self._scrubber.data(exchanges))
        draft = self._path.with_name(f"{self._path.name}.part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(self._path)


async def _passed_on(answer: httpx.Response, sender: Sender) -> bytes:
    names = ("content-type", "retry-after", "request-id", "x-request-id")
    headers = {name: answer.headers[name] for name in names if name in answer.headers}
    await sender.start(answer.status_code, headers)
    data = bytearray()
    async for piece in answer.aiter_raw():
        data += piece
        await sender.piece(piece)
    await sender.end()
    return bytes(data)


def read(api: Api, answer: httpx.Response, data: bytes) -> Reply | Failure:
    """Return what an answer of the provider means.

    Raises:
        KeyError, TypeError, ValueError, IndexError, AttributeError: it is none of this API, or was cut.
    """
    if answer.status_code >= 400:
        return _failure(answer, data)
    if "text/event-stream" in answer.headers.get("content-type", ""):
        return api.read_events(_without_errors(sse.read(data)))
    return api.read_whole(httpx.Response(200, content=data).json())


def _without_errors(events: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for event in events:
        if event.get("error") or event.get("type") == "error":
            raise ValueError("the stream ended with an error")
        yield event


def _failure(answer: httpx.Response, data: bytes) -> Failure:
    try:
        error = httpx.Response(200, content=data).json()["error"]
        message = str(error["message"])
        kind = str(error.get("type") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        message = data[:500].decode("utf-8", "replace")
        kind = ""
    after = answer.headers.get("retry-after", "")
    return Failure(answer.status_code, message, kind, float(after) if after.isdecimal() else None)


def target(base_url: str, path: str, query: str = "") -> str:
    """Return where a request goes on to: the base URL is written as for the official clients, with `/v1` or without."""
    base = base_url.rstrip("/")
    base_path = urlsplit(base).path
    if base_path.endswith("/v1"):
        url = base.removesuffix("/v1") + path
    elif base_path and not path.endswith("/messages"):
        url = base + path.removeprefix("/v1")  # such as https://host/openai, where the client adds no /v1
    else:
        url = base + path
    return f"{url}?{query}" if query else url
