"""The files that a running `pallas` has beside agents.yaml: a lock, by which others know that it runs, and its output.

A lock of the file system (flock) ends with its process, however that ends; the number of a process may be another's by
then.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pallas_contract.launch.program import STATE

_LONGEST = 300
"""Most bytes that are read of a lock file: a number and a URL."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Paths for one fleet file; several of one folder have files of their own."""

    folder: Path
    lock: Path
    log: Path
    older_log: Path
    """What was in `log` before it became too large."""


def of(config: Path) -> RunFiles:
    """Return the files of the fleet file at `config`."""
    folder = config.parent / STATE["local"] / "run"
    log = folder / f"{config.stem}.log"
    return RunFiles(folder, folder / f"{config.stem}.lock", log, log.with_suffix(".log.1"))


def project_id(config: Path) -> str:
    """Return 16 hexadecimal digits that tell the fleet file at `config` from its copies in other folders."""
    return hashlib.sha256(os.fsencode(os.path.realpath(config))).hexdigest()[:16]


@contextlib.contextmanager
def locked(path: Path, registry: str = "") -> Iterator[bool]:
    """Hold the lock at `path`, with the number of this process in it; yield False where another one has it.

    `registry` is the URL of the fleet's registry, for `registry_of`.

    Raises:
        OSError: there can be no such file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        os.ftruncate(descriptor, 0)
        os.write(descriptor, "\n".join([str(os.getpid()), *([registry] if registry else [])]).encode())
        yield True
    finally:
        os.close(descriptor)


def holder(path: Path) -> int | None:
    """Return the process that holds the lock at `path`; None where nobody does, 0 where it has not said who it is."""
    lines = _lines_of_holder(path)
    return None if lines is None else int(lines[0]) if lines[0].isdigit() else 0


def registry_of(path: Path) -> str:
    """Return the URL of the registry of the run that holds the lock at `path`; empty where none does, or tells."""
    lines = _lines_of_holder(path) or []
    return lines[1] if len(lines) > 1 else ""


def _lines_of_holder(path: Path) -> list[str] | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, _LONGEST).decode("utf-8", "replace").split("\n")
    finally:
        os.close(descriptor)
    return None
