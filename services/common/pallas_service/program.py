"""A program of the fleet as a process: exit code 0 when told to stop, 1 for the world, 2 for what the user wrote.

Nothing is imported here before it is needed: `--help` and `--version` need hardly anything.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence

from pallas_contract import __version__
from pallas_contract.problems import Refused


class Failure(Exception):
    """A reason in the world why a program cannot run; the text is for the user."""


def parse(name: str, arguments: Sequence[str], *, description: str, epilog: str) -> None:
    """Refuse all arguments but `--help` and `--version`, of a program whose settings are agents.yaml and variables.

    Raises:
        SystemExit: it was one of the two (0), or any other (2).
    """
    parser = argparse.ArgumentParser(prog=name, description=description, epilog=epilog)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    parser.parse_args(arguments)


def run(name: str, serve: Callable[[], int]) -> int:
    """Run `serve` and return its exit code, or that of why it cannot run, which goes to stderr without a traceback.

    `serve` raises `Refused` for what the user wrote, `Failure` for the world.
    """
    # a stop that comes before it listens ends the process as quietly as one that comes after
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        return serve()
    except Refused as refused:
        for problem in refused.problems:
            sys.stderr.write(f"{problem}\n")
        return 2
    except Failure as failure:
        sys.stderr.write(f"{name}: {failure}\n")
        return 1
