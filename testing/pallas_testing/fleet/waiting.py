"""Waiting for something that is not there yet, and saying what was seen instead."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL = 0.1
_PATIENCE = 0.02
"""Share of the time waited so far until the next look: what takes a minute is asked for once a second."""
_SHOWN = 12
"""Last observations that an error shows."""


class NotYet(AssertionError):
    """What was waited for did not come; the text says what was seen, and when."""


def until[T](
    look: Callable[[], T],
    met: Callable[[T], bool],
    *,
    what: str,
    within: float,
    fatal: tuple[type[Exception], ...] = (),
) -> T:
    """Return the first look that is `met`; an exception of a look counts as one that is not, unless it is `fatal`.

    Raises:
        NotYet: none was within `within` seconds.
    """
    __tracebackhide__ = True
    began = time.monotonic()
    observations: list[tuple[float, str]] = []
    while True:
        try:
            value = look()
            if met(value):
                return value
            text = str(value)
        except fatal:
            raise
        except Exception as error:  # whatever a fleet that is not well makes of a request
            text = f"{type(error).__name__}: {error}"
        now = time.monotonic() - began
        if not observations or observations[-1][1] != text:
            observations.append((now, text))
        if now > within:
            break
        time.sleep(max(_POLL, min(1.0, now * _PATIENCE)))
    lines = [f"{at:7.1f} s  {text}" for at, text in observations[-_SHOWN:]]
    raise NotYet("\n".join([f"waited {within:g} s in vain for {what}; seen:", *lines]))
