"""Which target runs a fleet file: processes by the lock of `pallas`, containers by docker compose, else nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pallas_cli.trouble import Trouble
from pallas_contract.launch import compose_containers, run_files

COMPOSE_FILE = "compose.yaml"
_CLEAR_LINE = b"\x1b[2K"


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
        Trouble: docker fails, or the containers are those of a fleet of the same name in another folder; unless the
            fleet has run as processes here.
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
        containers = _containers(compose, ended=ended and not has_log)
        _refuse_others(containers, compose)
    except Trouble as trouble:
        if not has_log:
            raise
        sys.stderr.write(f"{trouble}\n    its containers, if there are any, are left alone\n")
        return None
    return Running("compose", compose=compose) if containers else None


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


def tool_lines(command: list[str], cwd: Path) -> int:
    """Run a command whose output is lines for the user, and return as `tool` does.

    Where they go to a file or a pipe, none begins with the code by which compose 2 clears a terminal's line.

    Raises:
        Trouble: it is not here.
    """
    if sys.stdout.isatty():
        return tool(command, cwd)
    try:
        process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE)  # noqa: S603
    except FileNotFoundError:
        raise Trouble(f"{command[0]} is not here, and this target needs it") from None
    with process:
        try:
            for line in process.stdout or ():
                sys.stdout.buffer.write(line.removeprefix(_CLEAR_LINE))
                sys.stdout.buffer.flush()
        except BaseException:  # the reader has gone, and the next line may never come
            process.terminate()
            raise
    return 1 if process.returncode else 0


def _containers(file: Path, *, ended: bool) -> list[str]:
    """Return the ids of the containers of a compose file's project; none where docker is not here."""
    command = compose_command(file, "ps", "--quiet", *(["--all"] if ended else []))
    try:
        done = subprocess.run(command, check=False, cwd=file.parent, capture_output=True, text=True)  # noqa: S603
    except FileNotFoundError:
        return []
    if done.returncode:
        raise Trouble(f"`{' '.join(command)}` fails: {done.stderr.strip()}")
    return done.stdout.split()


def _refuse_others(containers: list[str], file: Path) -> None:
    """Let nobody read or stop the containers of another fleet, which compose knows by the same name.

    Raises:
        Trouble: another compose file made them.
    """
    if not containers:
        return
    command = compose_containers.listing(*(f"id={container}" for container in containers))
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if other := compose_containers.other_file(done.stdout, file):
        hint = "look after them there, or give this fleet another `name` in agents.yaml"
        raise Trouble(f"the containers of the compose project of {file} are those of {other}\n    {hint}")
