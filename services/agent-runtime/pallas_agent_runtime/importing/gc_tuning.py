"""The pace of Python's garbage collector: seldom while modules are imported, as usual afterwards."""

from __future__ import annotations

import gc

_USUAL = gc.get_threshold()


def seldom() -> None:
    """Collect seldom, while modules are imported.

    They make a million objects and hardly any garbage, and a look for it every 2,000 objects is a seventh of the start.
    """
    gc.set_threshold(50_000)


def as_usual() -> None:
    """Collect as usual from now on; what is there stays, and no turn waits for a look through it."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
