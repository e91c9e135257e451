"""The base of every section of agents.yaml: strict models, and secrets by reference."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

NAME_BYTES = 255
PATH_BYTES = 4095
"""Longest name of a file and longest path that Linux has: it raises an error for more, whoever asks for what reason."""


def fitting_path(path: str) -> str:
    """Return `path` if a file may have it.

    Raises:
        ValueError: it is longer than any path or name can be.
    """
    if len(path.encode()) > PATH_BYTES or any(len(name.encode()) > NAME_BYTES for name in path.split("/")):
        raise ValueError(f"must be a path in which no name has more than {NAME_BYTES} bytes")
    return path


def readable_url(url: str) -> str:
    """Return `url` if its host and port can be read, which no pattern says: [:::] is no address, 99999 no port.

    Raises:
        ValueError: one of them cannot.
    """
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise ValueError(f"must be a URL that can be read: {error}") from None
    return url


Text = Annotated[str, StringConstraints(min_length=1)]
FilePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(fitting_path)]


class Written(BaseModel):
    """Strict: no unknown key, no coercion of a text into a number."""

    # of twenty models two are validated by themselves, and only by commands that read a fleet: the rest would be built
    # for nothing
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, use_attribute_docstrings=True)


class SecretFile(Written):
    """A secret by reference: the file whose content becomes the value."""

    file: FilePath
    """Path of the file, relative to agents.yaml or absolute."""
