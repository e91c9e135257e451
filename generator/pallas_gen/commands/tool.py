"""Tools that a command of ours runs: docker, and what puts images into a cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

_LAST_LINES = 40
"""Docker's summary of a build that fails has 10 lines of the step, and the Dockerfile around it."""


class ToolFailed(Exception):
    """A tool that ended with an error. The text is the end of its output, empty where a person has just seen it."""


def run(command: Sequence[str]) -> None:
    """Run a tool: on a terminal it shows itself, elsewhere nothing is shown of it unless it fails.

    Raises:
        ToolFailed: it ended with an error.
    """
    if sys.stdout.isatty():
        if subprocess.run(command, check=False).returncode:  # noqa: S603
            raise ToolFailed
        return
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # noqa: S603
    if done.returncode:
        raise ToolFailed("\n".join(done.stdout.decode("utf-8", "replace").rstrip().splitlines()[-_LAST_LINES:]))
