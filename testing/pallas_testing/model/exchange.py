"""What is asked of a model and what it answers, the same whichever API it came by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]
Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Image:
    """An image that was sent along: its bytes, or the URL where a provider would fetch it."""

    media_type: str
    data: bytes = field(default=b"", repr=False)
    url: str = ""

    def __str__(self) -> str:
        if self.url:
            return f"{self.media_type} at {self.url}"
        return f"{self.media_type} of {len(self.data)} bytes, sha256 {hashlib.sha256(self.data).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one tool."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `tool` is the tool that answered, where the role is `tool`."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    images: tuple[Image, ...] = ()
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is offered to the model."""

    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the model."""

    api: str
    """`chat`, `responses` or `messages`."""
    model: str
    instruction: str
    messages: tuple[Message, ...]
    tools: Mapping[str, Tool]
    schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer has to fit, None where it is free text."""
    forced_tool: str = ""
    """The only tool that the model may call, and has to."""
    stream: bool = False
    caller: str = ""
    """Address the request came from."""
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The request as it was sent."""

    @property
    def user(self) -> str:
        """Return the text of the last message of the user."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def turn(self) -> tuple[Message, ...]:
        """Return the last message of the user and what came after it."""
        starts = [index for index, message in enumerate(self.messages) if message.role == "user"]
        return self.messages[starts[-1] :] if starts else self.messages

    @property
    def results(self) -> tuple[tuple[str, str], ...]:
        """Return tool and text of each result of this turn."""
        return tuple((message.tool, message.text) for message in self.turn if message.role == "tool")

    @property
    def images(self) -> tuple[Image, ...]:
        """Return the images of this turn, those in results of tools too."""
        return tuple(image for message in self.turn for image in message.images)


@dataclass(frozen=True, slots=True)
class Reply:
    """A text and calls of tools: both, one of them, or several calls at once."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"


class CannotFail(Exception):
    """A backend that cannot be had to fail; the text says why."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error of the provider."""

    status: int
    message: str = ""
    type: str = ""
    """The provider's word for it; empty: the usual one of the status."""
    retry_after: float | None = None
    """Seconds for the header `retry-after`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does: `result` after `delay` seconds, or nothing at all where it `hang`s."""

    result: Reply | Failure
    delay: float = 0.0
    per_token: float = 0.0
    """Seconds before each piece of the answer."""
    cut_after: int | None = None
    """Pieces after which the connection is closed, in the middle of the answer."""
    hang: bool = False


def conversation(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages as turns have them: what an API sends as the user's right after a result belongs to the result.

    Chat completions take no image in a result, so clients send it in a message of the user's behind it.
    """
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last and message.role == "user" and last.role == "tool":
            text = "\n".join(filter(None, (last.text, message.text)))
            merged[-1] = replace(last, text=text, images=last.images + message.images)
        elif last and message.role == "assistant" and last.role == "assistant":
            text = last.text + message.text
            merged[-1] = replace(last, text=text, calls=last.calls + message.calls)
        else:
            merged.append(message)
    return tuple(merged)
