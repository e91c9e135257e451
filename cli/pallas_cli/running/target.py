"""Which target runs a fleet file: processes by the lock of `pallas`, containers by docker compose, else nothing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pallas_cli.running import stacks
from pallas_cli.trouble import Trouble
from pallas_contract import names
from pallas_contract.launch import addresses, compose_containers, run_files
from pallas_contract.launch.compose_containers import Stack

COMPOSE_FILE = "compose.yaml"
_CLEAR_LINE = b"\x1b[2K"


@dataclass(frozen=True, slots=True)
class Running:
    """The target that runs the fleet; `pid` is that of `pallas`, `stack` what the containers were made from."""

    target: Literal["processes", "compose"]
    pid: int = 0
    stack: Stack | None = None


def find(config: Path, *, output: Path | None = None, ended: bool = False) -> Running | None:
    """Return what runs the fleet file at `config`; None where nothing does on this machine.

    `output` is the folder of the compose file that is meant; without it the processes come first, and a stack is known
    by the fleet file that it was written for, wherever its compose file lies. With `ended` containers that no longer
    run count too, where no run of processes has left its log.

    Raises:
        Trouble: docker fails, several stacks could be meant, or the containers are those of a fleet of the same name in
            another folder; unless the fleet has run as processes here.
    """
    files = run_files.of(config)
    pid = None if output else run_files.holder(files.lock)
    if pid is not None:
        return Running("processes", pid=pid)
    has_log = not output and files.log.is_file()
    try:
        stack = _stack(config, output, ended=ended and not has_log)
    except Trouble as trouble:
        if not has_log:
            raise
        sys.stderr.write(f"{trouble}\n    its containers, if there are any, are left alone\n")
        return None
    return Running("compose", stack=stack) if stack else None


def starts(config: Path) -> str:
    """Return the commands that start the fleet of `config`: as processes, and by each compose file written for it."""
    commands = [["pallas", "up", *([] if str(config) == names.AGENTS_FILE else ["-f", str(config)])]]
    folder = config.parent
    for file in [folder / COMPOSE_FILE, *sorted(folder.glob(f"*/{COMPOSE_FILE}"))]:
        written_for = compose_containers.fleet_file(file) if file.is_file() else None
        if written_for and os.path.realpath(written_for) == os.path.realpath(config):
            option = [] if str(file) == COMPOSE_FILE else ["-f", str(file)]
            commands.append(["docker", "compose", *option, "up", "--wait"])
    return " or ".join(f"`{shlex.join(command)}`" for command in commands)


def registry_of(config: Path) -> str:
    """Return the URL at which the registry of the fleet of `config` answers here, without a look into the file.

    Of processes their lock has it, of containers docker; it is empty where neither tells, or several could be meant.
    """
    if url := run_files.registry_of(run_files.of(config).lock):
        return url
    try:
        listed = [stack for stack in stacks.all_here(stacks.BRIEF) if _is_meant(stack, config, None)]
    except Trouble:
        return ""
    published = {pair for stack in listed for pair in stack.published}
    if len({port for _, port in published}) != 1:
        return ""
    host, port = min(published, key=lambda pair: (pair[0] != addresses.LOOPBACK, pair))
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def stack_of(config: Path) -> Stack | None:
    """Return a stack of the fleet file that has containers, running or ended; None where nobody knows of one."""
    try:
        return _stack(config, None, ended=True, patience=stacks.BRIEF)
    except Trouble:
        return None


def compose_command(stack: Stack, *words: str) -> list[str]:
    """Return a command of docker compose for a stack, in the folder of its file, whose `.env` and overrides count."""
    files = [word for file in stack.files for word in ("--file", str(file))] if stack.project else []
    project = ["--project-name", stack.project] if stack.project else []
    return ["docker", "compose", "--project-directory", str(stack.files[0].parent), *project, *files, *words]


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


def _stack(config: Path, output: Path | None, *, ended: bool, patience: float | None = None) -> Stack | None:
    """Return the stack of a fleet file, or the one in the folder `output`; None where it has no containers.

    `patience` is that of `stacks.all_here`.

    Raises:
        Trouble: docker fails, several have containers, or those of its project are another fleet's.
    """
    # a command runs in this folder, and would look for a relative one inside of it
    file = (output or config.parent).absolute() / COMPOSE_FILE
    own = [stack for stack in stacks.all_here(patience) if _is_meant(stack, config, output and file)]
    own = [stack for stack in own if _containers(stack, ended=ended)]
    if len(own) > 1:
        folders = "\n".join(f"    -o {stack.files[0].parent} (compose project {stack.project})" for stack in own)
        raise Trouble(f"{config}: several stacks of this fleet are here: name one\n{folders}")
    if own:
        return own[0]
    if not file.is_file():
        if output:
            raise Trouble(f"{file} is not there: name the folder that `pallas-gen compose -o DIR` wrote to")
        return None
    beside = Stack("", (file,))  # its registry may be gone, or somebody's own file may bring it along
    containers = _containers(beside, ended=ended)
    _refuse_others(containers, file)
    return beside if containers else None


def _is_meant(stack: Stack, config: Path, file: Path | None) -> bool:
    """Return whether a stack was made from the compose file `file`; for the fleet file, where none is named."""
    if file is not None:
        return any(os.path.realpath(path) == os.path.realpath(file) for path in stack.files)
    return stack.fleet_file is not None and os.path.realpath(stack.fleet_file) == os.path.realpath(config)


def _containers(stack: Stack, *, ended: bool) -> list[str]:
    """Return the ids of the containers of a stack; none where docker is not here."""
    command = compose_command(stack, "ps", "--quiet", *(["--all"] if ended else []))
    try:
        done = subprocess.run(command, check=False, cwd=stack.files[0].parent, capture_output=True, text=True)  # noqa: S603
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
