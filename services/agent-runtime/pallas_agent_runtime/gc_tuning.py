"""How often Python looks for garbage that refers to itself."""

from __future__ import annotations

import gc

_USUAL = gc.get_threshold()


def seldom() -> None:
    """While modules are imported: they make a million objects and hardly any garbage, and to look for it every 2,000
    objects is a seventh of the start.
    """
    gc.set_threshold(50_000)


def as_usual() -> None:
    """From now on; what is there stays, and is not gone through again and again while turns are answered."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
