"""The commands that compile, build and start a fleet, run to their end; what they say of a failure is the failure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from pallas_testing.project.fleet_file import FleetFile
from pallas_testing.targets.base import CannotDisturb, CannotStart, Order

TIMEOUT = 1800.0
"""Seconds for one command: the first build of the images takes minutes."""


def run(
    command: Sequence[str],
    file: FleetFile,
    order: Order,
    *,
    stdin: str | None = None,
    failure: type[CannotStart | CannotDisturb] = CannotStart,
) -> str:
    """Return what a command prints in the folder of the copy.

    Raises:
        CannotStart: it fails, takes too long, or is not there; the text has what it says. Or another `failure`.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the targets'
            command,
            cwd=file.path.parent,
            env=order.environ,
            input=stdin or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        raise failure(f"{command[0]} is not here, and this target needs it") from None
    except subprocess.TimeoutExpired:
        raise failure(f"`{' '.join(command)}` takes longer than {TIMEOUT:g} s") from None
    if done.returncode:
        raise failure(f"`{' '.join(command)}` ends with {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def generate(file: FleetFile, order: Order, verb: str, *options: str) -> str:
    """Run a verb of `pallas-gen` on the copy, and return what it prints.

    Raises:
        CannotStart: it refuses the fleet, or fails.
    """
    return run([sys.executable, "-P", "-m", "pallas_gen", verb, "-f", file.path.name, *options], file, order)
