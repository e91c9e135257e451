"""A tool that is asked and not shown: docker, kubectl and the like, run to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PATIENCE = 15.0
"""Seconds for a tool: the first run of one on a busy machine takes some."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a tool."""

    code: int
    output: str = ""
    errors: str = ""

    @property
    def reason(self) -> str:
        """Return the last line of what it has complained of."""
        return next((line.strip() for line in reversed(self.errors.splitlines()) if line.strip()), "")


Run = Callable[[Sequence[str]], Done | None]
"""A command -> its end; None where the tool is not here."""


def run(command: Sequence[str]) -> Done | None:
    """Run a tool to its end; None where it is not here."""
    try:
        done = subprocess.run(  # noqa: S603 - tools by their names, no shell
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Done(1, errors=f"no answer in {_PATIENCE:g} s")
    except OSError:
        return None
    return Done(done.returncode, done.stdout, done.stderr)
