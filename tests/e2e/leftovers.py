"""Stacks of a run that was killed: the next run takes them down, and none of a run that goes on."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = Path(tempfile.gettempdir(), f"pallas-test-stacks-{os.getuid()}")
"""A file for each stack, by the name of its compose project; who runs it has it locked, until it ends or is killed."""
LABEL = "io.pallas-kit.test"
"""On containers beside a stack: its project."""


def take_down(project: str) -> None:
    """Remove containers, networks and volumes of a compose project whose folder may be gone."""
    listing = ["docker", "ps", "--all", "--quiet", "--filter", f"label={LABEL}={project}"]
    beside = subprocess.run(listing, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    down = ["docker", "compose", "--project-name", project, "down", "--volumes", "--remove-orphans", "--timeout", "1"]
    for command in ([["docker", "rm", "--force", *beside]] if beside else []) + [down]:
        subprocess.run(command, check=True, capture_output=True, timeout=300)


@contextmanager
def owned(project: str, remove: Callable[[str], None] = take_down, folder: Path = FOLDER) -> Iterator[None]:
    """Run `project` as its owner; before, `remove` those whose owners are dead."""
    folder.mkdir(exist_ok=True)
    path = folder / project
    with path.open("a") as own:
        with (folder / ".lock").open("a") as alone:
            fcntl.flock(alone, fcntl.LOCK_EX)
            fcntl.flock(own, fcntl.LOCK_EX)
            for other in sorted(folder.iterdir()):
                if not other.name.startswith(".") and other != path:
                    _remove_dead(other, remove)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _remove_dead(path: Path, remove: Callable[[str], None]) -> None:
    with path.open("a") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        with suppress(subprocess.SubprocessError):  # what cannot be removed now, the next run tries again
            remove(path.name)
            path.unlink()
