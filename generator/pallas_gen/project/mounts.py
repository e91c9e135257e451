"""Files and links in the project folder: which of them could be code, and which lead out of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pallas_contract import names
from pallas_contract.fleet import fastagent_files
from pallas_gen.output import write

_OUTPUT = frozenset({"compose.yaml", "compose.override.yaml", "Dockerfile.fleet"})
_OTHERS = _OUTPUT | {"__pycache__", "node_modules", names.LOCK_FILE, *fastagent_files.SECRETS}


def inside(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Return those of `files` (relative to `folder` or absolute) that lie in it, each with its plain path there."""
    paths = {}
    for file in files:
        for path in (Path(os.path.normpath(folder / file)), (folder / file).resolve()):
            if path.is_relative_to(folder):
                paths[file] = path.relative_to(folder).as_posix()
    return paths


def links_outside(folder: Path, present: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the links among and below the entries `present` of `folder` that leave it, each with where it leads to."""
    for name in present:
        yield from _link(folder, folder / name)
        for root, folders, files in os.walk(folder / name if not (folder / name).is_symlink() else os.devnull):
            folders[:] = sorted(item for item in folders if not is_environment(Path(root, item)))
            for item in sorted([*folders, *files]):
                yield from _link(folder, Path(root, item))


def _link(folder: Path, path: Path) -> Iterator[tuple[str, str]]:
    if path.is_symlink() and not path.resolve().is_relative_to(folder):
        yield path.relative_to(folder).as_posix(), os.readlink(path)


def below(folder: Path, path: str) -> Iterator[str]:
    """Yield the files below `path` in `folder`: of charts and environments none, else what `is_code` takes."""
    for root, folders, files in os.walk(folder / path):
        if "Chart.yaml" in files or is_environment(Path(root)):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if is_code(PurePosixPath(name)))
        for name in sorted(files):
            inner = PurePosixPath(Path(root, name).relative_to(folder).as_posix())
            if is_code(PurePosixPath(name)) and not write.has_header(Path(root, name)):
                yield str(inner)


def is_code(path: PurePosixPath) -> bool:
    """Return whether no part of `path` is hidden, temporary, or what Python, Node and pallas-gen leave behind."""
    return not any(
        part.startswith((".", "#")) or part in _OTHERS or part.endswith(("~", ".pyc")) for part in path.parts
    )


def is_environment(path: Path) -> bool:
    """Return whether it is a virtual environment of Python: of use on this machine only, and with links out of it."""
    return (path / "pyvenv.cfg").is_file()


def is_left_over(path: Path) -> bool:
    """Return whether it is an environment, or output of an earlier run, on which what is generated must not depend.

    A folder without a file may be the one to write to; and no repository would bring it to another machine.
    """
    if not path.is_dir():
        return write.has_header(path)
    if is_environment(path):
        return True
    empty = os.access(path, os.R_OK | os.X_OK) and not any(files for _, _, files in os.walk(path))
    return empty or (path / "Chart.yaml").is_file() or write.wrote_all(path, _OUTPUT)
