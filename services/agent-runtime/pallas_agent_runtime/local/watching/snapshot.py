"""The project as it is now: its members, and what each of them is made of, so that two moments can be compared."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pallas_agent_runtime.local import supervisor
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.definitions import card, read, references
from pallas_contract.fleet import fastagent_files
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.problems import Problem, Refused
from pallas_contract.validate import load

SHARED = (*sorted(fastagent_files.ALL), names.DOTENV_FILE)
"""Files beside agents.yaml that every agent reads."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A project that `pallas` would start as it is."""

    members: Mapping[str, Member]
    """By name, in start order."""
    marks: Mapping[str, Hashable]
    """Member -> what it is made of; while that is the same there is no reason to start it again."""
    paths: frozenset[str]
    """What was looked at, from the project folder or absolute; also files that are not there, since they may come."""
    warnings: tuple[Problem, ...] = ()


def take(config: Path, environ: Mapping[str, str]) -> Snapshot:
    """Return the project of the fleet file at `config`, an absolute path.

    Raises:
        Refused: with what `pallas` would refuse at its start.
    """
    listed, tree, warnings = supervisor.read(config, environ)
    fleet = load.parse(tree)
    paths = {config.name}
    marks: dict[str, Hashable] = {}
    for member in listed:
        files = _Files(config.parent)
        _note(files, member, fleet)
        paths |= files.digests.keys()
        marks[member.name] = (_told(member, fleet), tuple(sorted(files.digests.items())))
    return Snapshot({member.name: member for member in listed}, marks, frozenset(paths), tuple(warnings))


def stamps(folder: Path, paths: Iterable[str]) -> Mapping[str, tuple[int, int, int] | None]:
    """Return inode, size and time of each file, None for one that is not there: cheap to look at twice a second."""
    return {path: _stamp(folder / path) for path in sorted(paths)}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _told(member: Member, fleet: ResolvedFleet) -> Hashable:
    """Return what a member is told, by its command, its environment and its part of the fleet file."""
    told = [repr(sorted(member.env.items())), repr((member.command, member.needs, member.stage, member.url))]
    # The registry follows the file by itself.
    if member.kind != "registry":
        common = (fleet.name, fleet.version, fleet.host, fleet.public_url, fleet.namespace, fleet.telemetry)
        told.append(repr(common))
    if member.kind == "agent":
        told.append(repr(fleet.agents[member.name]))
    elif member.kind == "gateway":
        told.append(repr((fleet.gateway, sorted(fleet.agents.items()))))
    elif member.kind == "service":
        told.append(repr(fleet.services[member.name]))
    # Secrets are in there; nobody needs to be able to read them here.
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogateescape")).hexdigest()


class _Files:
    """The files of one member, each with the digest of its content; None for one that is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.digests: dict[str, str | None] = {}

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
        """Note the files that the file at `path` names by literals: beside it, or from the project folder."""
        for text in texts:
            for base in (PurePosixPath(path).parent, PurePosixPath()):
                inner = os.path.normpath(base / text)
                if (self._folder / inner).is_file() and not inner.startswith(("/", "..")):
                    self.note(inner)

    def below(self, pattern: str) -> None:
        """Note the files that `pattern` matches, of folders all."""
        for match in sorted(self._folder.glob(pattern)) if pattern.strip("./") else ():
            for file in sorted(match.rglob("*")) if match.is_dir() else (match,):
                if file.is_file() and "__pycache__" not in file.parts:
                    self.note(file.relative_to(self._folder).as_posix())


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
        agent = fleet.agents[member.name]
        for name in SHARED:
            files.note(name)
        if agent.card:
            _card(files, agent.card)
        else:
            _module(files, agent.module or "")
        for pattern in (*(agent.files or ()), *(agent.skills or ())):
            files.below(pattern)


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
