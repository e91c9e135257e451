"""The files that MCP servers on stdio are started from: fast-agent starts them in the folder of agents.yaml."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pallas_contract.codes import Code
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet.fastagent import VARIABLE, Command, Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Level, Problem, Where

_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "python": (".py", ".pyz", ".pyc"),
    "node": (".js", ".mjs", ".cjs", ".ts"),
    "bun": (".js", ".mjs", ".cjs", ".ts"),
    "deno": (".js", ".mjs", ".ts"),
    "uv": (".py",),
    "bash": (".sh",),
    "sh": (".sh",),
    "perl": (".pl",),
    "ruby": (".rb",),
}
"""Interpreters, by their names without a version, and the endings of what they run."""
_BEFORE_A_SCRIPT = {"uv": ("run",), "deno": ("run",), "bun": ("run",)}
_PLAIN_OPTIONS = frozenset({"-u", "-B", "-E", "-I", "-O", "-OO", "-P", "-q", "-s", "-S", "-v", "-x", "--quiet"})
"""Options without a value that may stand before a script; behind any other one nobody knows here what follows."""


def problems(
    fleet: ResolvedFleet, config: Config, definitions: Mapping[str, Definitions], folder: Path
) -> Iterator[Problem]:
    """Yield a problem per server whose program, script or working directory is not in the project folder.

    An error where that is certain; a warning where an image of the user's may have it, or no agent is known to use the
    server. Of what is outside of the folder, or known only where the agent runs, nothing is said.
    """
    certain = _certain(fleet, definitions)
    for name, url in config.servers.items():
        level: Level = "error" if name in certain else "warning"
        if fleet.is_member(name):  # then it is called, at the URL that the fleet has for it
            continue
        if name in config.commands:
            yield from _missing(config.commands[name], folder, level)
        elif url is None and name not in config.connected:
            message = f"`{name}` has neither `command` nor `url`: there is nothing to start or to call"
            hint = "write `command: PROGRAM` and `args: [...]`, or `url: http://HOST:PORT/mcp`"
            yield Problem(
                replace(config.url_positions[name], field=f"mcp.servers.{name}"),
                message,
                hint,
                level,
                code=Code.SERVER_STARTS_NOTHING,
            )


def scripts(
    fleet: ResolvedFleet, config: Config, definitions: Mapping[str, Definitions]
) -> Iterator[tuple[str, str, bool]]:
    """Yield the Python scripts of servers, as paths in the project, with what runs them and whether that is certain."""
    certain = _certain(fleet, definitions)
    for name, command in config.commands.items():
        index = _script(command)
        start = command.folder or "."
        plain = start == "." or is_inside(start)
        if index is not None and plain and command.program != "uv" and command.arguments[index].endswith(".py"):
            yield _shown(start, command.arguments[index]), command.program, name in certain


def modules(
    fleet: ResolvedFleet, config: Config, definitions: Mapping[str, Definitions], folder: Path
) -> Iterator[tuple[str, Where]]:
    """Yield the modules that servers are run from (`python -m`) and that are not in the project, with their places."""
    used = {server for entry in definitions.values() for server in entry.servers}
    for name, command in config.commands.items():
        found = module(command) if name in used and not fleet.is_member(name) else ""
        if found and not is_local(found, command, folder):
            yield found, _position(command, command.arguments.index(found))


def module(command: Command) -> str:
    """Return the module that a server is run from by `python -m`; empty where it is run from something else."""
    if PurePosixPath(command.program).name.rstrip("0123456789.") != "python":
        return ""
    words = [word for word in command.arguments if word not in _PLAIN_OPTIONS]
    name = words[1] if words[:1] == ["-m"] and len(words) > 1 else ""
    return name if name.replace(".", "").isidentifier() else ""


def is_local(name: str, command: Command, folder: Path) -> bool:
    """Return whether a module, or the package it is in, lies where the server is started, or whether nobody knows."""
    start = command.folder or "."
    top = name.partition(".")[0]
    if start != "." and not is_inside(start):
        return True
    return os.path.isfile(folder / start / f"{top}.py") or os.path.isdir(folder / start / top)


def _position(command: Command, index: int) -> Where:
    return command.positions[index] if command.positions else command.where


def _certain(fleet: ResolvedFleet, definitions: Mapping[str, Definitions]) -> set[str]:
    """Return the servers that an agent is known to use which has no image of the user's."""
    own = fleet.written.image.agent
    agents = [name for name, agent in fleet.agents.items() if not (agent.image or own)]
    return {server for name in agents for server in definitions[name].servers}


def _missing(command: Command, folder: Path, level: Level) -> Iterator[Problem]:
    start = command.folder or "."
    if not is_inside(start) and start != ".":
        return
    if not os.path.isdir(folder / start):
        hint = "create it beside agents.yaml, or correct `cwd`: the server is started there"
        yield Problem(
            command.where, f"its `cwd` {start} is no folder in the project", hint, level, code=Code.SERVER_FOLDER
        )
        return
    base = folder / start
    if "/" in command.program and is_inside(command.program):
        yield from _missing_program(command, base, level)
    script = _script(command)
    if script is not None and not os.path.isfile(base / command.arguments[script]):
        path = command.arguments[script]
        where = _position(command, script)
        message = (
            f"there is no file {_shown(start, path)}, which `{command.program}` is to run: the server never starts"
        )
        yield Problem(
            where,
            message,
            f"create it beside agents.yaml, or correct the path{_alike(folder, path)}",
            level,
            code=Code.SERVER_FILE,
        )


def _missing_program(command: Command, base: Path, level: Level) -> Iterator[Problem]:
    path = base / command.program
    if not os.path.isfile(path):
        message = f"there is no file {_shown(command.folder or '.', command.program)}: the server never starts"
        yield Problem(
            command.where, message, "create it beside agents.yaml, or correct the path", level, code=Code.SERVER_FILE
        )
    elif not os.access(path, os.X_OK):
        yield Problem(
            command.where,
            f"{command.program} may not be executed",
            f"`chmod +x {command.program}`",
            level,
            code=Code.NOT_EXECUTABLE,
        )


def _script(command: Command) -> int | None:
    """Return the index of the argument that is the script of an interpreter; None where that is not certain."""
    interpreter = PurePosixPath(command.program).name.rstrip("0123456789.")
    suffixes = _SUFFIXES.get(interpreter)
    if suffixes is None:
        return None
    words: Sequence[str] = command.arguments
    before = _BEFORE_A_SCRIPT.get(interpreter, ())
    if tuple(words[: len(before)]) != before:
        return None
    for index in range(len(before), len(words)):
        word = words[index]
        if word in _PLAIN_OPTIONS or (interpreter == "uv" and word in ("python", "python3")):
            continue
        return index if word.endswith(suffixes) and is_inside(word) else None
    return None


def is_inside(path: str) -> bool:
    """Return whether a path is a plain one, relative, that leads nowhere outside of where it starts."""
    plain = not VARIABLE.search(path) and not path.startswith(("/", "~", "-")) and "\\" not in path
    return plain and not os.path.normpath(path).startswith("..")


def _shown(start: str, path: str) -> str:
    return os.path.normpath(os.path.join(start, path))


def _alike(folder: Path, path: str) -> str:
    """Return a hint at a file of that name elsewhere in the project, the first of them."""
    name = os.path.basename(path)
    candidates = (f"{entry.name}/{name}" for entry in sorted(folder.iterdir()) if entry.is_dir())
    nearest = next((candidate for candidate in candidates if os.path.isfile(folder / candidate)), "")
    return f": there is {nearest}" if nearest else ""
