"""The parts of a message's content, as both of OpenAI's APIs write them."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pallas_testing.model.exchange import Image


def content(value: Any) -> tuple[str, tuple[Image, ...]]:
    """Return text and images of a message; a part of another kind is its type in brackets.

    Raises:
        KeyError, TypeError, ValueError: it is no content.
    """
    if value is None or isinstance(value, str):
        return value or "", ()
    texts: list[str] = []
    images: list[Image] = []
    for part in value:
        match part["type"]:
            case "text" | "input_text" | "output_text":
                texts.append(part["text"])
            case "image_url":
                images.append(image(part["image_url"]["url"]))
            case "input_image" if part.get("image_url"):
                images.append(image(part["image_url"]))
            case other:
                texts.append(f"[{other}]")
    return "\n".join(texts), tuple(images)


def image(url: str) -> Image:
    """Return the image of a URL, which may be one that has the bytes in it.

    Raises:
        ValueError: its bytes are not base64.
    """
    head, comma, data = url.partition(",")
    if not url.startswith("data:") or not comma:
        return Image("image/*", url=url)
    try:
        return Image(head.removeprefix("data:").partition(";")[0], base64.b64decode(data, validate=True))
    except binascii.Error as error:
        raise ValueError(f"the image in a data URL is not base64: {error}") from None
