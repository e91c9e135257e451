"""Schemas that strangers wrote, those of agents that registered themselves: what a check costs is not theirs to choose.

A pattern can take hours for forty characters, and Python's `re` lets nothing else run meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

SECONDS = 5.0
"""Seconds of a processor for one check, far beyond what an honest one takes."""
MOST = 4000
"""Values of a schema."""
_UNCHECKED = {"pattern": str, "uniqueItems": bool, "$schema": str}
"""Keywords that are passed over, with the type that tells them from properties of that name.

The first two can take long in one step; the last would have the rest checked by another class than that of `validator`.
"""
_until: ContextVar[float] = ContextVar("until")


class TooMuchWork(Exception):
    """A check that takes too long, or a schema that is too large or may take too long."""


def without_costly(schema: dict[str, Any]) -> Any:
    """Return a schema without the keywords that are not checked.

    Raises:
        TooMuchWork: it is too large, or has `patternProperties`, without which it would say something else.
    """
    left = iter(range(MOST))

    def copied(value: Any) -> Any:
        if next(left, None) is None:
            raise TooMuchWork
        if isinstance(value, list):
            return [copied(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("patternProperties"), dict):
            raise TooMuchWork
        return {
            key: copied(entry)
            for key, entry in value.items()
            if key not in _UNCHECKED or not isinstance(entry, _UNCHECKED[key])
        }

    return copied(schema)


def begin() -> None:
    """Begin a check in this thread, which may work for `SECONDS` from now on."""
    _until.set(time.thread_time() + SECONDS)


@cache
def validator() -> Any:
    """Return the class that checks, until the time of the thread is over: then it raises `TooMuchWork`."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - see `functions`

    keywords = {key: _timed(check) for key, check in Draft202012Validator.VALIDATORS.items()}
    return validators.extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]


def _timed(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def checked(*about: Any) -> Iterator[Any]:
        _in_time()
        for error in check(*about) or ():
            _in_time()
            yield error

    return checked


def _in_time() -> None:
    if time.thread_time() > _until.get():
        raise TooMuchWork
