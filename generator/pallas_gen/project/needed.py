"""What of the project folder a member needs: code that it imports, files that it names, and what `files` says.

Everything else stays where it is: a dump, a key or a neighbour's data reaches no container, no ConfigMap and no image.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pallas_contract.definitions import card, module, read, references
from pallas_contract.definitions.definition import Definitions
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.model import Service
from pallas_contract.fleet.resolved import ResolvedAgent
from pallas_contract.problems import Refused
from pallas_gen.project import mounts


@dataclass(frozen=True, slots=True)
class Needs:
    """Paths in the project folder, sorted; a folder that is meant whole ends in a slash."""

    paths: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)
    """Links out of the folder among what was named, with where they lead to."""
    missed: dict[str, str] = field(default_factory=dict)
    """Folders that code reads as a whole, as far as one can tell, and does not get; with the file that names them."""
    unmatched: tuple[str, ...] = ()
    """Patterns of `files` that name nothing which may be handed over."""


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The project folder, the files in it that nobody gets by name (secrets, and what is handed over anyway), texts."""

    folder: Path
    closed: frozenset[str]
    text_of: read.TextOf
    seen: dict[tuple[str, Callable[[Path], bool]], bool] = field(default_factory=dict)
    """Whether a path is a file or a folder of the project: members share most of what they name."""


def of_agent(
    agent: ResolvedAgent,
    config: Config,
    definitions: Definitions,
    project: ProjectFiles,
    *,
    folders: Iterable[str] = (),
) -> Needs:
    """Return what `agent` needs; `folders` it gets as a whole, where they are in the project."""
    needed = _Needed(project)
    for path in mounts.inside(project.folder, folders).values():
        needed.whole(path)
    if agent.card:
        needed.card(agent.card)
    else:
        needed.start(agent.module or "")
    for name, command in config.commands.items():
        if definitions.unclear or not definitions.agents or name in definitions.servers:
            needed.command(command.program, command.arguments)
    return needed.finished(agent.files)


def of_service(service: Service, project: ProjectFiles) -> Needs:
    """Return what `service` needs."""
    needed = _Needed(project)
    if service.module:
        needed.start(service.module)
    return needed.finished(service.files)


def of_folder(path: str, project: ProjectFiles) -> Needs:
    """Return a folder as a whole, without what is hidden in it."""
    needed = _Needed(project)
    needed.whole(path.rstrip("/"))
    return needed.finished(())


class _Needed:
    """The paths of one member, found from its own code on."""

    def __init__(self, project: ProjectFiles) -> None:
        self._folder = project.folder
        self._text_of = project.text_of
        self._closed = project.closed
        self._seen = project.seen
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._followed: set[str] = set()
        self._links: dict[str, str] = {}
        self._read: dict[str, str] = {}
        self._above: frozenset[str] = frozenset()

    def finished(self, patterns: Iterable[str]) -> Needs:
        """Return everything, with what `patterns` match."""
        unmatched = tuple(pattern for pattern in patterns if not self._pattern(pattern))
        outer = {path for path in self._folders if not _within(path, self._folders)}
        files = {path for path in self._files if not _within(path, outer)}
        paths = tuple(sorted(files | outer))
        missed = {
            folder: name
            for folder, name in sorted(self._read.items())
            if not any(path.startswith(f"{folder}/") or f"{folder}/".startswith(path) for path in paths)
        }
        return Needs(paths, self._links, missed, unmatched)

    def start(self, name: str) -> None:
        """Add the member's own module. The packages above it hold the neighbours' code too, and are not taken whole."""
        parts = name.split(".")
        self._above = frozenset("/".join(parts[:depth]) for depth in range(1, len(parts)))
        self._module(name)

    def card(self, path: str) -> None:
        """Add a card and what it names."""
        self._file(path)
        try:
            parsed = card.parse(self._text(path) or "", name=path)
        except Refused:  # what cannot be read names nothing; that it cannot be read is not for here to say
            return
        self._named(path, references.in_card(parsed), references.folders_in_card(parsed))

    def command(self, program: str, arguments: tuple[str, ...]) -> None:
        """Add the files that the command line of an MCP server names."""
        if "/" in program:
            self._file(os.path.normpath(program))
        for before, word in zip(("", *arguments), arguments, strict=False):
            if before == "-m":
                self._module(word)
            else:
                self._literal(PurePosixPath(), word)

    def _module(self, name: str) -> bool:
        files = [path for path, _ in read.files_of(name, self._text)]
        for path in files:
            self._file(path)
        package = str(PurePosixPath(files[0]).parent) if files and files[0].endswith("/__init__.py") else ""
        if package and package not in self._above:
            self.whole(package)
        return bool(files)

    def _file(self, path: str) -> None:
        if path not in self._closed and self._is_there(path, os.path.isfile):
            self._files.add(path)
            self._follow(path)

    def whole(self, path: str) -> None:
        """Add a folder, and what the modules in it import and name."""
        if f"{path}/" not in self._folders and self._is_there(path, os.path.isdir):
            self._folders.add(f"{path}/")
            for file in mounts.below(self._folder, path):
                self._follow(file)

    def _follow(self, path: str) -> None:
        if path in self._followed or not path.endswith(".py"):
            return
        self._followed.add(path)
        package = PurePosixPath(path).parent.parts
        try:
            parsed = module.parse(self._text(path) or "", name=path, package=package)
        except Refused:
            return
        for candidates in parsed.imports:
            any(self._module(candidate) for candidate in candidates)
        self._named(path, references.in_module(parsed.tree), references.folders_in_module(parsed.tree))
        for text in references.folders_read(parsed.tree):
            for base in (PurePosixPath(path).parent, PurePosixPath()):
                inner = os.path.normpath(base / text)
                if inner != "." and mounts.is_code(PurePosixPath(inner)) and self._is_there(inner, os.path.isdir):
                    self._read.setdefault(inner, path)

    def _named(self, path: str, files: Iterable[str], folders: Iterable[str]) -> None:
        """Add what is there of the names in a file: beside it, or from the project folder, where programs run."""
        bases = (PurePosixPath(path).parent, PurePosixPath())
        for text in sorted(set(files)):
            for base in bases:
                self._literal(base, text)
        for text in sorted(set(folders)):
            for base in bases:
                inner = os.path.normpath(base / text)
                if inner not in (".", *self._above):
                    self.whole(inner)
                for file in mounts.below(self._folder, inner) if f"{inner}/" in self._folders else ():
                    self.card(file)

    def _literal(self, base: PurePosixPath, text: str) -> None:
        name = PurePosixPath(text).name
        if "." in name and not name.startswith("."):
            self._file(os.path.normpath(base / text))

    def _pattern(self, pattern: str) -> bool:
        """Add what `pattern` matches, if anything. Hidden names have to be spelled as such."""
        plain = pattern.rstrip("/").removesuffix("/**/*").removesuffix("/**")
        if plain in (".", "**"):  # the whole folder is never meant: what lies in it by chance would get in
            return False
        spelled = any(part.startswith(".") for part in PurePosixPath(plain).parts)
        matched = False
        for path in sorted(self._folder.glob(plain)):
            inner = path.relative_to(self._folder).as_posix()
            if not (spelled or mounts.is_code(PurePosixPath(inner))) or mounts.is_left_over(path):
                continue
            if path.is_dir():
                self.whole(inner)
            else:
                self._file(inner)
            matched = matched or inner in self._files or f"{inner}/" in self._folders
        return matched

    def _text(self, path: str) -> str | None:
        """Return the text of a file, None where there is none; one that cannot be read is there, and names nothing."""
        try:
            return self._text_of(path) if self._is_there(path, os.path.isfile) else None
        except Refused:
            return ""

    def _is_there(self, path: str, kind: Callable[[Path], bool]) -> bool:
        """Return whether the project has such a file or folder; a link out of it is noted, and is none."""
        there = self._seen.get((path, kind))
        if there is None:
            there = self._looked_up(path, kind)
        if there is None:
            self._note_link(path)
        else:
            self._seen[path, kind] = there
        return bool(there)

    def _looked_up(self, path: str, kind: Callable[[Path], bool]) -> bool | None:
        """Return whether it is there; None where it leads out of the project."""
        full = self._folder / path
        if path.startswith(("/", "..")) or not (kind(full) or os.path.islink(full)):
            return False
        return kind(full) if full.resolve().is_relative_to(self._folder) else None

    def _note_link(self, path: str) -> None:
        for link in (*reversed(PurePosixPath(path).parents), PurePosixPath(path)):
            if not (self._folder / link).resolve().is_relative_to(self._folder):
                self._links[link.as_posix()] = os.readlink(self._folder / link)
                break


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path != folder and path.startswith(folder) for folder in folders)
