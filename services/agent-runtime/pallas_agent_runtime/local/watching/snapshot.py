"""The project as it is now: its members, and what each of them is made of, so that two moments can be compared."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pallas_agent_runtime.local import supervisor
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.definitions import card, read, references
from pallas_contract.definitions.definition import FunctionTool
from pallas_contract.fleet import fastagent_files
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet
from pallas_contract.problems import Problem, Refused, refuse_errors
from pallas_contract.validate.code import function_tools

SHARED = (*sorted(fastagent_files.ALL), names.DOTENV_FILE)
"""Files beside agents.yaml that every agent reads."""
_SOURCES = frozenset({".py", ".md", ".yaml", ".yml", ".json", ".txt", ".toml", ".csv", ".j2"})
"""Suffixes of files that code reads. It names its log and its database by a literal too, and writes those."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The state of one member; while it is the same there is no reason to start it again."""

    entry: str
    """Digest of its command, its environment and its part of the fleet file."""
    files: tuple[tuple[str, str | None], ...] = ()
    """Each file with the digest of its content, None for one that is not there."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A project that `pallas` would start as it is."""

    members: Mapping[str, Member]
    """By name, in start order."""
    marks: Mapping[str, Mark]
    """By member."""
    paths: frozenset[str]
    """What was looked at, from the project folder or absolute; also files that are not there, since they may come."""
    data: frozenset[str] = frozenset()
    """Those of `paths` that are no code: files named by literals, `files` and skills. Code may write them."""
    warnings: tuple[Problem, ...] = ()

    def without(self, paths: frozenset[str]) -> Snapshot:
        """Return the project as if nobody had the files at `paths`."""
        marks = {
            name: Mark(mark.entry, tuple(file for file in mark.files if file[0] not in paths))
            for name, mark in self.marks.items()
        }
        return replace(self, marks=marks, paths=self.paths - paths, data=self.data - paths)


class Flawed(Refused):
    """A project that `pallas` would not start; it is mended in one of the files `paths`."""

    def __init__(self, problems: Iterable[Problem], paths: frozenset[str]) -> None:
        super().__init__(problems)
        self.paths = paths


def take(config: Path, environ: Mapping[str, str], *, allow_plain_secrets: bool = False) -> Snapshot:
    """Return the project of the fleet file at `config`, an absolute path.

    Raises:
        Flawed: with what `pallas` would refuse at its start.
        Refused: the fleet file makes no fleet.
    """
    examined = supervisor.examine(config, environ, allow_plain_secrets=allow_plain_secrets)
    listed = examined.members
    fleet = examined.fleet
    paths = {config.name}
    code: set[str] = {config.name}
    marks: dict[str, Mark] = {}
    for member in listed:
        files = _Files(config.parent)
        _note(files, member, fleet)
        paths |= files.digests.keys()
        code |= files.digests.keys() - files.data
        marks[member.name] = Mark(_told(member, fleet), tuple(sorted(files.digests.items())))
    by_name = {member.name: member for member in listed}
    try:
        warnings = refuse_errors(examined.problems)
    except Refused as refused:
        raise Flawed(refused.problems, frozenset(paths)) from None
    return Snapshot(by_name, marks, frozenset(paths), frozenset(paths - code), tuple(warnings))


def stamps(folder: Path, paths: Iterable[str]) -> Mapping[str, tuple[int, int, int] | None]:
    """Return inode, size and time of each file, None for one that is not there: cheap to look at twice a second."""
    return {path: _stamp(folder / path) for path in sorted(paths)}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # code may name a file that no system has: one with NUL in its path
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _told(member: Member, fleet: ResolvedFleet) -> str:
    """Return what a member is told, by its command, its environment and its part of the fleet file."""
    told = [repr(sorted(member.env.items())), repr((member.command, member.needs, member.stage, member.url))]
    # The registry follows the file by itself.
    if member.kind != "registry":
        common = (fleet.name, fleet.version, fleet.host, fleet.public_url, fleet.namespace, fleet.telemetry)
        told.append(repr(common))
    if member.kind == "agent":
        told.append(repr(fleet.agents[member.name]))
    elif member.kind == "gateway":
        told.append(repr((fleet.gateway, sorted(fleet.agents.items()), sorted(fleet.services.items()))))
    elif member.kind == "service":
        told.append(repr(fleet.services[member.name]))
    # Secrets are in there; nobody needs to be able to read them here.
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogateescape")).hexdigest()


class _Files:
    """The files of one member, each with the digest of its content; None for one that is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.digests: dict[str, str | None] = {}
        self.data: set[str] = set()
        """Those that no code is in, as far as it was noted before them."""

    def note(self, path: str) -> bytes | None:
        """Return the content of a file, and remember that it was looked at."""
        try:
            content = (self._folder / path).read_bytes()
        except (OSError, ValueError):
            self.digests[path] = None
            return None
        self.digests[path] = hashlib.sha256(content).hexdigest()
        return content

    def text(self, path: str) -> str | None:
        """Return a file as text (read.TextOf)."""
        content = self.note(path)
        return None if content is None else content.decode("utf-8", "replace").removeprefix("\ufeff")

    def named(self, path: str, texts: Iterable[str]) -> None:
        """Note the sources that the file at `path` names by literals: beside it, or from the project folder."""
        for text in texts:
            for base in (PurePosixPath(path).parent, PurePosixPath()):
                inner = os.path.normpath(base / text)
                source = PurePosixPath(inner).suffix in _SOURCES and not inner.startswith(("/", ".."))
                if source and (self._folder / inner).is_file():
                    self._datum(inner)

    def below(self, pattern: str) -> None:
        """Note the files that `pattern` matches, of folders all."""
        for match in sorted(self._folder.glob(pattern)) if pattern.strip("./") else ():
            for file in sorted(match.rglob("*")) if match.is_dir() else (match,):
                if file.is_file() and "__pycache__" not in file.parts:
                    self._datum(file.relative_to(self._folder).as_posix())

    def _datum(self, path: str) -> None:
        if path not in self.digests:
            self.data.add(path)
            self.note(path)


def _note(files: _Files, member: Member, fleet: ResolvedFleet) -> None:
    """Note all files of a member, as far as its code names them."""
    for secret in member.secrets:
        files.note(secret.file)
    if member.kind == "service":
        service = fleet.services[member.name]
        if service.module:
            _module(files, service.module)
        for pattern in service.files:
            files.below(pattern)
    elif member.kind == "agent":
        _note_agent(files, fleet.agents[member.name])


def _note_agent(files: _Files, agent: ResolvedAgent) -> None:
    for name in SHARED:
        files.note(name)
    if agent.card:
        _card(files, agent.card)
    else:
        _module(files, agent.module or "")
    for definition in read.definitions(agent, files.text).agents:
        for path in (*(file.path for file in definition.files), *map(_file_of, definition.function_tools)):
            files.note(path)
    for pattern in (*(agent.files or ()), *(agent.skills or ())):
        files.below(pattern)


def _file_of(tool: FunctionTool) -> str:
    path, _ = function_tools.split(tool)
    return path


def _module(files: _Files, name: str) -> None:
    try:
        modules = read.module_files(name, files.text)
    except Refused:  # it is noted all the same, and what it names when it is Python again
        return
    for path, module in modules.items():
        files.named(path, references.in_module(module.tree))


def _card(files: _Files, path: str) -> None:
    text = files.text(path)
    try:
        parsed = card.parse(text or "", name=path)
    except Refused:
        return
    files.named(path, references.in_card(parsed))
