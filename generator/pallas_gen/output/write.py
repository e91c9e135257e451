"""Files -> disk: all or nothing, atomically, and never over something the user wrote."""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where
from pallas_gen.output import yaml as yaml_out

Files = Mapping[PurePosixPath, str]

SUMS = PurePosixPath(".pallas-gen.sums")
"""Written beside files that can carry no header: `sha256  path` of each, so that an edited one is noticed, and one
that is no longer written can be taken away. Another target's has its name in it (`sums_file`): what one of two targets
in the same folder did not write is not stale."""


def sums_file(target: str) -> PurePosixPath:
    """Return the name of a target's own `SUMS`."""
    return SUMS.with_name(f".pallas-gen.{target}.sums")


def is_sums(path: PurePosixPath) -> bool:
    """Return whether a file is `SUMS`, of any target."""
    return path.name.startswith(".pallas-gen.") and path.suffix == ".sums"


def sums_among(files: Files) -> PurePosixPath | None:
    """Return the name of the one `SUMS` that is among the files."""
    return next(filter(is_sums, files), None)


def sums(files: Files) -> str:
    """Return the text of `SUMS` for these files."""
    return "".join(f"{_sum(text)}  {path}\n" for path, text in sorted(files.items()))


def differences(files: Files, folder: Path) -> list[str]:
    """Return a unified diff per file that is not on disk as it would be written; empty when nothing would change."""
    diffs = []
    for name, text in sorted(files.items()):
        before = _read(folder / name) or ""
        if before != text:
            lines = difflib.unified_diff(_lines(before), _lines(text), f"a/{name}", f"b/{name}", lineterm="")
            diffs.append("\n".join(lines))
    return diffs + [f"--- a/{name}\n+++ /dev/null" for name in _stale(files, folder)]


def write(files: Files, folder: Path, *, force: bool = False) -> list[Path]:
    """Write what differs, remove what an earlier version wrote and this one does not, and return the paths.

    Nothing is written when one file is in the way.

    Raises:
        Refused: a file stands there that pallas-gen did not write, or that was edited since (unless `force`).
        OSError: the folder cannot be written.
    """
    recorded = recorded_sums(folder, sums_among(files))
    blocked = [] if force else [name for name in sorted(files) if _in_the_way(folder, name, files[name], recorded)]
    if blocked:
        hint = "move it away, write elsewhere with `-o DIR`, or overwrite it with `--force`"
        message = "exists and is not as pallas-gen left it"
        raise Refused(Problem(Where(str(folder / name)), message, hint, code=Code.FILE_IN_THE_WAY) for name in blocked)
    folder.mkdir(parents=True, exist_ok=True)
    stale = _stale(files, folder)
    # a file that is as it should be keeps its inode and its time
    changed = [folder / name for name, text in sorted(files.items()) if _read(folder / name) != text]
    for path in changed:
        _replace(path, files[PurePosixPath(path.relative_to(folder))])
    for name in stale:
        (folder / name).unlink()
    return changed + [folder / name for name in stale]


def write_in_place(path: Path, text: str) -> bool:
    """Write a text into the file that is there, so that a container that mounts it alone sees it; return if it differs.

    A crash in the middle leaves half of it. A file that is not there is written as the others are.

    Raises:
        OSError: it cannot be written.
    """
    before = _read(path)
    if before == text:
        return False
    if before is None:
        _replace(path, text)
        return True
    with path.open("r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    return True


def wrote_all(folder: Path, names: Collection[str]) -> bool:
    """Return whether every file in a folder, at any depth, is one of `names` or was written here; False if none is."""
    recorded: set[Path] = set()
    count = 0
    for root, _, files in os.walk(folder):
        for sums_name in filter(is_sums, map(PurePosixPath, files)):
            recorded |= {Path(root, path) for path in recorded_sums(Path(root), sums_name)}
        for name in files:
            path = Path(root, name)
            if name not in names and not is_sums(PurePosixPath(name)) and path not in recorded and not has_header(path):
                return False
            count += 1
    return count > 0


def has_header(path: Path) -> bool:
    """Return whether a file begins as those that say by themselves who wrote them."""
    try:
        if not path.is_file():  # a pipe would wait for somebody to write
            return False
        with path.open("rb") as file:
            return file.read(len(yaml_out.MARK)) == yaml_out.MARK.encode()
    except OSError:
        return False  # not readable, so nobody wrote it here


def _in_the_way(folder: Path, name: PurePosixPath, new: str, recorded: Mapping[PurePosixPath, str]) -> bool:
    found = _read(folder / name)
    if found is None or found == new or is_sums(name):
        return False
    text = _plain_lines(found)
    return recorded[name] != _sum(text) if name in recorded else yaml_out.edited_by_hand(text)


def recorded_sums(folder: Path, name: PurePosixPath | None) -> dict[PurePosixPath, str]:
    """Return what the `SUMS` of that name says: path -> sha256. A path that leads out of the folder is not one of ours.

    It is empty where there is no such file, or no name.
    """
    text = (_read(folder / name) if name else "") or ""
    pairs = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    records = {PurePosixPath(path): digest for digest, path in pairs}
    return {path: digest for path, digest in records.items() if not path.is_absolute() and ".." not in path.parts}


def _stale(files: Files, folder: Path) -> list[PurePosixPath]:
    """Files an earlier version wrote here and nobody has changed since; only asked where sums are written again."""
    recorded = recorded_sums(folder, sums_among(files)).items()
    return [
        name for name, sum_ in recorded if name not in files and _sum(_plain_lines(_read(folder / name) or "")) == sum_
    ]


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _lines(text: str) -> list[str]:
    """Return the lines of a text. They end at line feeds alone, so that one with another ending differs."""
    return text.removesuffix("\n").split("\n") if text else []


def _plain_lines(text: str) -> str:
    """Return a text with the line endings that are written here: another one is git's doing, and nobody's edit."""
    return text.replace("\r\n", "\n")


def _read(path: Path) -> str | None:
    # as it is: a text that is read as one has lost its line endings
    return path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else None


def _replace(path: Path, text: str) -> None:
    """Write beside, fsync, rename: a reader sees the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # beside it: a rename is atomic within one file system only
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # a temporary file is 0600, and containers read it as another user
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        os.unlink(beside)
        raise OSError(error.errno, error.strerror, str(path)) from None  # a full disk does not say which file
    except BaseException:
        os.unlink(beside)
        raise
    # without this a crash may lose the rename itself
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
