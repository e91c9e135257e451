"""Programs that read what strangers have made: each a process of its own, which may come to harm alone."""

from __future__ import annotations

import os
import sys

_PASSED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


def command(program: str, *arguments: str) -> list[str]:
    """Return the command of a file of ours; no module beside it stands in for one of Python's."""
    return [sys.executable, "-P", program, *arguments]


def environment() -> dict[str, str]:
    """Return the variables that Python needs to start, and none of the service's: keys are among these."""
    return {name: os.environ[name] for name in _PASSED if name in os.environ}
