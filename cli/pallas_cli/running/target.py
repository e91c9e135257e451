"""Which target runs a fleet file: processes by the lock of `pallas`, containers by docker compose, else nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pallas_cli.trouble import Trouble
from pallas_contract.launch import run_files

COMPOSE_FILE = "compose.yaml"


@dataclass(frozen=True, slots=True)
class Running:
    """The target that runs the fleet; `pid` is that of `pallas`, `compose` the file of the containers."""

    target: Literal["processes", "compose"]
    pid: int = 0
    compose: Path | None = None


def find(config: Path, *, ended: bool = False) -> Running | None:
    """Return what runs the fleet file at `config`; None where nothing does on this machine.

    With `ended` containers that no longer run count too, where no run of processes has left its log.

    Raises:
        Trouble: docker fails, and the fleet has not run as processes here.
    """
    files = run_files.of(config)
    pid = run_files.holder(files.lock)
    if pid is not None:
        return Running("processes", pid=pid)
    # the command runs in this folder, and would look for a relative one inside of it
    compose = config.parent.absolute() / COMPOSE_FILE
    if not compose.is_file():
        return None
    has_log = files.log.is_file()
    try:
        has_containers = _has_containers(compose, ended=ended and not has_log)
    except Trouble as trouble:
        if not has_log:
            raise
        sys.stderr.write(f"{trouble}\n    its containers, if there are any, are left alone\n")
        return None
    return Running("compose", compose=compose) if has_containers else None


def compose_command(file: Path, *words: str) -> list[str]:
    """Return a command of docker compose in the folder of its file, so that compose.override.yaml counts."""
    return ["docker", "compose", "--project-directory", str(file.parent), *words]


def tool(command: list[str], cwd: Path | None = None) -> int:
    """Run a command whose output is for the user; return 0 where it ends well, else 1.

    Raises:
        Trouble: it is not here.
    """
    try:
        return 1 if subprocess.run(command, check=False, cwd=cwd).returncode else 0  # noqa: S603
    except FileNotFoundError:
        raise Trouble(f"{command[0]} is not here, and this target needs it") from None


def _has_containers(file: Path, *, ended: bool) -> bool:
    command = compose_command(file, "ps", "--quiet", *(["--all"] if ended else []))
    try:
        done = subprocess.run(command, check=False, cwd=file.parent, capture_output=True, text=True)  # noqa: S603
    except FileNotFoundError:
        return False
    if done.returncode:
        raise Trouble(f"`{' '.join(command)}` fails: {done.stderr.strip()}")
    return bool(done.stdout.strip())
