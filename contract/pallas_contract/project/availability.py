"""Whether this machine has what an MCP server on stdio is started by: one answer for all commands, and no guess."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet.fastagent import VARIABLE, Command, Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem
from pallas_contract.project import programs

Find = Callable[[str], str | None]
"""A program's name -> its path on this machine, None where there is none (shutil.which)."""


def problems(
    fleet: ResolvedFleet,
    config: Config,
    definitions: Mapping[str, Definitions],
    folder: Path,
) -> Iterator[Problem]:
    """Yield a warning per server that an agent uses, or may use, and that does not start as a process here."""
    used = {server for entry in definitions.values() for server in entry.servers}
    unclear = any(entry.unclear for entry in definitions.values())
    for name, command in config.commands.items():
        if not fleet.is_member(name) and (unclear or name in used):
            yield from problem(command, folder)


def problem(command: Command, folder: Path) -> Iterator[Problem]:
    """Yield a warning where a server does not start as a process here; `folder` is the project's."""
    reason = missing(command, folder)
    if reason:
        hint = "install it (`uvx` comes with uv, `npx` with Node), or give the server's URL"
        if "module" in reason:
            hint = "correct the name, or install the package that brings it"
        elif "/" in command.program:
            hint = "correct the path, install it there, or give the server's URL"
        message = f"{reason}: as a process the agent is without this server"
        yield Problem(command.where, message, hint, "warning", code=Code.NO_PROGRAM)


def missing(command: Command, folder: Path, find: Find = shutil.which) -> str:
    """Return why a server cannot be started on this machine; empty where it can, or where only starting it tells.

    A path inside of the project is no matter of the machine: `programs` looks for that.
    """
    program = command.program
    if not program or VARIABLE.search(program) or command.own_path or program.startswith("~"):
        return ""
    if "/" in program:
        return "" if programs.is_inside(program) else _missing_path(folder / (command.folder or "."), program)
    if not find(program):
        return f"there is no program `{program}` here"
    module = programs.module(command)
    known = (
        not module or programs.is_local(module, command, folder) or not is_ours(program, find) or _is_installed(module)
    )
    return "" if known else f"there is no module `{module}` here"


def _missing_path(start: Path, program: str) -> str:
    path = start / program
    if VARIABLE.search(str(path)) or os.access(path, os.X_OK):
        return ""
    return f"`{program}` may not be executed here" if os.path.isfile(path) else f"there is no program `{program}` here"


def is_ours(program: str, find: Find = shutil.which) -> bool:
    """Return whether a program of a server is of this environment: of another nobody knows the packages here."""
    path = find(program)
    return path is not None and os.path.dirname(os.path.abspath(path)) == os.path.dirname(sys.executable)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except ValueError:  # a module that is there and has no spec
        return True
