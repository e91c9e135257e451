"""Files on disk compared byte for byte with what would be written now; nothing is written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Literal

from pallas_gen.output import write
from pallas_gen.output import yaml as yaml_out


@dataclass(frozen=True, slots=True)
class Drift:
    """One file that is not as it would be written now."""

    path: PurePosixPath
    kind: Literal["missing", "irregular", "edited", "outdated", "unknown", "leftover", "foreign"]
    """`irregular` where something else than a file stands; `edited` since it was written, `outdated` as it was written,
    or `unknown` which of both; `leftover` of an earlier run, `foreign` where every file counts."""
    line: int = 0
    """The first line that differs, from 1; 0 where the file is not to be there, or is not there."""


def drift(files: write.Files, folder: Path, owned: Iterable[str] = ()) -> Iterator[Drift]:
    """Yield what differs in `folder`, by path; in the folders `owned` below it, everything else is `foreign`.

    A folder is not by itself, but a link to one is: what reads the files follows it.

    Raises:
        OSError: a file cannot be read.
    """
    sums = write.sums_among(files)
    recorded = write.recorded_sums(folder, sums)
    content = {path: text for path, text in files.items() if path != sums}
    entries = [*_changes(content, folder, recorded), *_extra(files, folder, recorded, owned)]
    if not entries and sums is not None:  # it follows from the others, so it is named only when they are right
        entries = list(_changes({sums: files[sums]}, folder, recorded))
    yield from sorted(entries, key=lambda entry: entry.path)


def _changes(files: write.Files, folder: Path, recorded: Mapping[PurePosixPath, str]) -> Iterator[Drift]:
    for path, text in files.items():
        if not (folder / path).is_file():
            yield Drift(path, "irregular" if os.path.lexists(folder / path) else "missing")
            continue
        actual = (folder / path).read_bytes()
        if actual != text.encode():
            line = _first_difference(actual, text.encode())
            if path in recorded:
                edited = recorded[path] != hashlib.sha256(actual).hexdigest()
                yield Drift(path, "edited" if edited else "outdated", line)
            elif actual.startswith(yaml_out.MARK.encode()):
                edited = yaml_out.edited_by_hand(actual.decode("utf-8", errors="replace"))
                yield Drift(path, "edited" if edited else "outdated", line)
            else:
                yield Drift(path, "unknown", line)


def _extra(
    files: write.Files, folder: Path, recorded: Mapping[PurePosixPath, str], owned: Iterable[str]
) -> Iterator[Drift]:
    for path in recorded:
        if path not in files and _is_something(folder / path):
            yield Drift(path, "leftover")
    for root in (folder / name for name in owned):
        # what is behind a link is not looked at: it may be all of the disk
        for file in (root, *(() if root.is_symlink() else root.rglob("*"))):
            path = PurePosixPath(file.relative_to(folder).as_posix())
            if path not in files and path not in recorded and _is_something(file):
                yield Drift(path, "foreign")


def _is_something(path: Path) -> bool:
    """Return whether a file, a link, a pipe or the like is there: not a folder, of which the content counts."""
    return os.path.lexists(path) and (path.is_symlink() or not path.is_dir())


def _first_difference(actual: bytes, planned: bytes) -> int:
    lines = zip_longest(actual.splitlines(keepends=True), planned.splitlines(keepends=True))
    return next(number for number, (one, other) in enumerate(lines, 1) if one != other)
