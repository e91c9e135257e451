"""The wire formats of the model APIs, one module each, all with the same functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from pallas_testing.model.exchange import Failure, Reply, Request
from pallas_testing.model.wire import chat, messages, responses
from pallas_testing.model.wire.sse import Event


class Api(Protocol):
    """An API: requests read, answers written whole or as events, and a provider's answers read."""

    def read(self, body: Mapping[str, Any], caller: str) -> Request: ...

    def whole(self, request: Request, reply: Reply) -> Mapping[str, Any]: ...

    def events(self, request: Request, reply: Reply) -> Iterator[Event]: ...

    def failure(self, error: Failure) -> Mapping[str, Any]: ...

    def read_whole(self, body: Mapping[str, Any]) -> Reply: ...

    def read_events(self, stream: Iterable[Mapping[str, Any]]) -> Reply: ...


APIS: Mapping[str, Api] = {
    "/v1/chat/completions": chat,
    "/v1/responses": responses,
    "/v1/messages": messages,
}
"""Path -> API."""
