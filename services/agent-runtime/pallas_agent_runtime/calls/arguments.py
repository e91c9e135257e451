"""The arguments of `send_message` and of the tool named after the agent: their schema, and their checks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pallas_contract.documents import health

SEND = "send_message"
MIME_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
MAX_HANDLE = 256

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "Message to the agent"},
        "images": {
            "type": "array",
            "description": "Images for a model with vision",
            "items": {
                "type": "object",
                "properties": {
                    "data": {"type": "string", "description": "The image, base64-encoded"},
                    "mime_type": {"type": "string", "enum": list(MIME_TYPES)},
                },
                "required": ["data", "mime_type"],
                "additionalProperties": False,
            },
        },
        "session_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_HANDLE,
            "description": "Handle of a conversation that is to be continued. The caller chooses it, one that nobody "
            "can guess: of an agent that asks for no token, whoever knows the handle can read the conversation",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}


class BadArgument(Exception):
    """An argument is not what the schema says; the text names it and is fit for the caller."""


def own_tool(agent: str) -> str:
    """Return the tool by which `agent` is asked: the one with its name, which one called like another tool lacks."""
    return SEND if agent in (SEND, health.TOOL) else agent


@dataclass(frozen=True, slots=True)
class Image:
    """One attached image; `data` stays base64, as both protocol and model want it."""

    data: str
    mime_type: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the agent. `handle` names the conversation, None when the caller named none."""

    text: str
    images: tuple[Image, ...] = ()
    handle: str | None = None


def parse(arguments: Mapping[str, Any], limit: int) -> Question:
    """Check the arguments, of which text and images may have `limit` bytes together, as sent.

    Raises:
        BadArgument: for the first one that is wrong.
    """
    _only(arguments, SCHEMA["properties"], "")
    images = arguments.get("images")
    if images is not None and not isinstance(images, list):
        raise BadArgument(f"images: must be a list, not {_kind(images)}")
    handle = arguments.get("session_id")
    if handle is not None:
        handle = _text(arguments, "session_id", "")
        if not 0 < len(handle) <= MAX_HANDLE:
            raise BadArgument(f"session_id: must have 1 to {MAX_HANDLE} characters")
    parsed = tuple(_image(image, f"images[{index}]") for index, image in enumerate(images or []))
    question = Question(_text(arguments, "message", ""), parsed, handle)
    _check_size(question, limit)
    return question


def _check_size(question: Question, limit: int) -> None:
    """Refuse the field with which it becomes too much, by name."""
    text = len(question.text.encode("utf-8", "surrogatepass"))
    sizes = [("message", text), *((f"images[{i}].data", len(image.data)) for i, image in enumerate(question.images))]
    total = 0
    for path, size in sizes:
        total += size
        if total > limit:
            raise BadArgument(f"{path}: too large; message and images may have {limit} bytes together")


def _image(image: Any, path: str) -> Image:
    if not isinstance(image, Mapping):
        raise BadArgument(f"{path}: must be an object with data and mime_type, not {_kind(image)}")
    _only(image, ("data", "mime_type"), f"{path}.")
    data = _text(image, "data", f"{path}.")
    mime_type = _text(image, "mime_type", f"{path}.")
    if mime_type not in MIME_TYPES:
        raise BadArgument(f"{path}.mime_type: must be one of {', '.join(MIME_TYPES)}")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BadArgument(f"{path}.data: is not base64") from None
    if not decoded:  # the empty text is valid base64
        raise BadArgument(f"{path}.data: is empty")
    return Image(data, mime_type)


def _text(holder: Mapping[str, Any], name: str, prefix: str) -> str:
    if name not in holder:
        raise BadArgument(f"{prefix}{name}: is required")
    value = holder[name]
    if not isinstance(value, str):
        raise BadArgument(f"{prefix}{name}: must be text, not {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can spell it, but no model, log or file can take it
        raise BadArgument(f"{prefix}{name}: has half of a surrogate pair (character {error.start + 1})") from None
    return value


def _only(holder: Mapping[str, Any], allowed: Any, prefix: str) -> None:
    for name in holder:
        if name not in allowed:
            raise BadArgument(f"{prefix}{name[:80]}: unknown argument; known: {', '.join(allowed)}")


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object", str: "text"}
    return kinds.get(type(value), "null")
