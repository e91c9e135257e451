"""`pallas add`: an agent, a service or an outside MCP server more, in the files of the project; whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pallas_cli.project import additions, init, insertion
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet import fastagent, fastagent_files, source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem, Refused, Where
from pallas_contract.validate import load, plain_secrets

_SERVERS = ("mcp", "servers")


@dataclass(frozen=True, slots=True)
class Addition:
    """An entry for the mapping at `path` of a YAML file, with the files that it needs, and what is to be done next."""

    file: Path
    path: tuple[str, ...]
    name: str
    entry: Mapping[str, Any]
    next: str
    files: Mapping[PurePosixPath, str] = field(default_factory=dict)


def run(options: Namespace) -> int:
    """Add what was asked for, and say what comes next; returns the exit code.

    Raises:
        Refused: it is there already, or the fleet would not be right with it; then nothing is changed.
    """
    if not names.is_name(options.name):
        hint = f"at most {names.MAX_NAME} of a to z, 0 to 9, `-` and `_`, beginning with a letter"
        raise Refused([Problem(Where(options.name), "is no name of a member", hint, code=Code.NOT_A_MEMBER_NAME)])
    file = options.file
    fleet, tree, _ = load.load(file)
    _refuse_present(fleet, tree, options.name)
    if options.kind == "server":
        addition = _server(options, file.parent)
        text, changed = _changed(addition)
        _refuse_secrets(addition, source.parse(changed, name=addition.file.name))
    else:
        addition = _agent(options, fleet, file) if options.kind == "agent" else _service(options, fleet, file)
        text, changed = _changed(addition)
        load.check(source.parse(changed, name=file.name))
    init.refuse_present(file.parent, addition.files)
    _write(addition, text, changed)
    if not options.quiet:
        sys.stdout.writelines(f"wrote {file.parent / path}\n" for path in sorted(map(str, addition.files)))
        sys.stdout.write(f"changed {addition.file}\n\nnext:\n  {addition.next}\n")
    return 0


def _agent(options: Namespace, fleet: ResolvedFleet, file: Path) -> Addition:
    name = options.name
    module = additions.identifier(name)
    if options.card:
        code, path, text = {"card": f"agents/{name}.md"}, f"agents/{name}.md", additions.card(name)
    else:
        code, path, text = {"module": f"agents.{module}"}, f"agents/{module}.py", additions.agent_module(name)
    entry: dict[str, Any] = {**code, "port": options.port or free_port(fleet)}
    models = _models_of_all(fleet)
    if models:  # else it would ask the provider itself, where the others have a stand-in
        entry["depends_on"] = models
    hint = f"say in {path} what it is for, and put `{name}` into `depends_on` of an agent that is to call it"
    return Addition(file, ("agents",), name, entry, hint, {PurePosixPath(path): text})


def _service(options: Namespace, fleet: ResolvedFleet, file: Path) -> Addition:
    name = options.name
    use = f"put `{name}` into `depends_on` of an agent, and into its `servers`"
    if options.image:
        if not options.port:
            raise Refused(
                [Problem(Where("--image"), "needs --port: where it listens in its container", code=Code.MISSING_OPTION)]
            )
        entry = {"image": options.image, "port": options.port}
        return Addition(file, ("services",), name, entry, f"{use}; docs/services.md has its other keys")
    module = additions.identifier(name)
    entry = {"module": f"tools.{module}", "port": options.port or free_port(fleet)}
    files = {PurePosixPath(f"tools/{module}.py"): additions.service_module(name)}
    return Addition(file, ("services",), name, entry, f"write its tools in tools/{module}.py, and {use}", files)


def _server(options: Namespace, folder: Path) -> Addition:
    """Return an outside MCP server, which belongs into fast-agent's configuration.

    Raises:
        Refused: it is there already, or nothing would start it.
    """
    file = fastagent_files.config(folder) or folder / fastagent_files.CONFIG[0]
    entry: dict[str, Any] = {"transport": "http", "url": options.url}
    if options.url and not fastagent.VARIABLE.search(options.url) and (flaw := fastagent.flaw(options.url)):
        raise Refused([Problem(Where("--url"), flaw, "write http://HOST:PORT/mcp, or https", code=Code.WRONG_URL)])
    if options.command is not None:
        if not options.command:
            hint = "write it last: `--command npx -y mcp-files`"
            raise Refused([Problem(Where("--command"), "names no program", hint, code=Code.MISSING_OPTION)])
        entry = {"command": options.command[0], "args": options.command[1:]}
    if file.is_file():
        tree = source.read(file)
        if options.name in _servers(tree):
            raise Refused([_taken(tree.problem, (*_SERVERS, options.name))])
    hint = f"put `{options.name}` into `servers` of the agents that are to use it, in their module or card"
    return Addition(file, _SERVERS, options.name, entry, hint)


def _refuse_secrets(addition: Addition, tree: Source) -> None:
    """Refuse a server with a secret in plain text: the file is committed, and copied into generated ones."""
    place = ".".join((*addition.path, addition.name, ""))
    option = Where("--url" if "url" in addition.entry else "--command")
    for problem in plain_secrets.in_config(tree):
        if problem.where.field.startswith(place):
            hint = f"{problem.hint.partition(' (or allow')[0]}; to the shell it is '${{NAME}}'"
            raise Refused([Problem(option, "holds a secret in plain text", hint, code=Code.PLAIN_SECRET)])


def _servers(tree: Source) -> Mapping[str, Any]:
    """Return the servers in fast-agent's configuration.

    Raises:
        Refused: they, or what they stand in, are no mapping.
    """
    value = tree.data
    for depth in range(len(_SERVERS) + 1):
        value = {} if value is None else value
        if not isinstance(value, Mapping):
            raise Refused(
                [
                    tree.problem(
                        *_SERVERS[:depth],
                        message="must be a mapping",
                        hint="nothing was changed",
                        code=Code.CONFIG_SHAPE,
                    )
                ]
            )
        if depth < len(_SERVERS):
            value = value.get(_SERVERS[depth])
    servers: Mapping[str, Any] = value
    return servers


def free_port(fleet: ResolvedFleet) -> int:
    """Return a port above all that the agents have, and that nothing in the file has."""
    used = {agent.port for agent in fleet.agents.values()} | {service.port for service in fleet.services.values()}
    used.add(fleet.registry_port)
    if fleet.gateway:
        used.add(fleet.gateway.port)
    port = max(agent.port for agent in fleet.agents.values()) + 1
    while port in used:
        port += 1
    return port


def _models_of_all(fleet: ResolvedFleet) -> list[str]:
    models = [name for name, service in fleet.services.items() if service.provides == "openai"]
    return [name for name in models if all(name in agent.depends_on for agent in fleet.agents.values())]


def _refuse_present(fleet: ResolvedFleet, tree: Source, name: str) -> None:
    for kind, members in (("agents", fleet.agents), ("services", fleet.services)):
        for member in members:
            if names.slug(member) == names.slug(name):
                raise Refused([_taken(tree.problem, (kind, member))])


def _taken(problem: Any, path: tuple[str, ...]) -> Problem:
    taken: Problem = problem(
        *path, message="is there already", hint="nothing was changed; choose another name", code=Code.ALREADY_THERE
    )
    return taken


def _changed(addition: Addition) -> tuple[str | None, str]:
    """Return the text of the file, None where there is none, and the text with the entry.

    Raises:
        Refused: there is no place that could be found; the entry is in the hint.
    """
    if not addition.file.is_file():
        return None, "\n".join([*insertion.lines(_SERVERS[0], {_SERVERS[1]: {addition.name: addition.entry}}, 0), ""])
    text = addition.file.read_bytes().decode("utf-8")
    try:
        return text, insertion.insert(text, addition.path, addition.name, addition.entry)
    except insertion.NoPlace:
        block = "\n".join(insertion.lines(addition.name, addition.entry, 0))
        where = Where(addition.file.name, field=".".join(addition.path))
        message = f"no place for `{addition.name}` could be found that leaves the rest as it is"
        raise Refused([Problem(where, message, f"write it yourself:\n{block}", code=Code.CANNOT_INSERT)]) from None


def _write(addition: Addition, before: str | None, after: str) -> None:
    """Write the files and then the entry; where that fails nothing is left.

    Raises:
        OSError: a disk that is full, or a folder that may not be written to.
        Refused: somebody else has changed the file meanwhile.
    """
    folder = addition.file.parent
    init.write(folder, addition.files)
    try:
        _replace(addition.file, before, after)
    except BaseException:
        for path in addition.files:
            with contextlib.suppress(OSError):
                (folder / path).unlink()
        raise


def _replace(file: Path, before: str | None, after: str) -> None:
    name = file.name
    file = Path(os.path.realpath(file))  # a link stays one
    current = file.read_bytes().decode("utf-8", "replace") if file.is_file() else None
    if current != before:
        raise Refused(
            [
                Problem(
                    Where(name),
                    "has been changed meanwhile",
                    "nothing was changed; once more",
                    code=Code.CHANGED_MEANWHILE,
                )
            ]
        )
    descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(descriptor, "wb") as beside:
            beside.write(after.encode("utf-8"))
        if before is None:
            os.chmod(temporary, 0o644)
        else:
            shutil.copymode(file, temporary)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
