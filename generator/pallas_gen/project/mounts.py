"""The part of the project folder that containers get: its code and configuration, never a folder or file with a secret.

Entries of the folder are handed over one by one. A mask over a secret in a folder handed over whole would come off when
an editor replaces the file, and one that is created later would not be masked at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pallas_contract.fleet import fastagent_files
from pallas_gen.output import write

_OUTPUT = frozenset({"compose.yaml", "compose.override.yaml", "Dockerfile.fleet"})
_OTHERS = _OUTPUT | {"__pycache__", "node_modules", *fastagent_files.SECRETS}


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


def entries(folder: Path, secrets: Iterable[str]) -> Iterator[str]:
    """Yield names of the files and folders in `folder` to hand over, sorted; `secrets` are paths in it."""
    closed = {PurePosixPath(secret).parts[0] for secret in secrets}
    for entry in sorted(folder.iterdir()):
        temporary = entry.name.startswith((".", "#")) or entry.name.endswith(("~", ".pyc"))
        if temporary or entry.name in _OTHERS | closed:
            continue
        if not is_environment(entry) and not _is_output(entry):
            yield entry.name


def is_environment(path: Path) -> bool:
    """Return whether it is a virtual environment of Python: of use on this machine only, and with links out of it."""
    return (path / "pyvenv.cfg").is_file()


def _is_output(path: Path) -> bool:
    """Return whether an earlier run wrote all of it, or this one will: else what is generated would depend on what was.

    A folder without a file may be the one to write to; and no repository would bring it to another machine.
    """
    if not path.is_dir():
        return False
    empty = os.access(path, os.R_OK | os.X_OK) and not any(files for _, _, files in os.walk(path))
    return empty or (path / "Chart.yaml").is_file() or write.wrote_all(path, _OUTPUT)
