"""Text files below one folder, for several writers: replaced whole or not at all, and read by no link.

A file is made beside and renamed, so that whoever reads has the old one or the new one, also after the machine has
failed. A writer holds the lock of the folder, and looks once more before it renames: an editor that saved meanwhile
holds no lock of ours.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from home_tools.problems import Full, Malformed, NotThere, Problem
from pallas_service.open_beneath import open_beneath

LONGEST = 256 * 1024
"""Bytes that a document may have."""
MOST = 1000
"""Documents that a folder may have."""
_TRIES = 5
_LOCK = ".lock"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder `path` below `root`; it is made where it is not there."""

    root: Path
    path: str

    def names(self, suffix: str = "") -> list[str]:
        """Return the names of the documents in it, sorted; hidden ones are none."""
        with self._opened() as folder:
            return sorted(
                entry.name
                for entry in os.scandir(folder)
                if entry.name.endswith(suffix) and entry.name[0] != "." and entry.is_file(follow_symlinks=False)
            )

    def read(self, name: str) -> str:
        """Return the text of a document.

        Raises:
            Problem: there is none, or it is too long or no text.
        """
        with self._opened() as folder:
            return _read(folder, name)

    def add(self, name: str, text: str) -> None:
        """Make a document.

        Raises:
            Problem: there is one of that name already, too many are there, or there is no room.
        """
        with self._writing() as folder:
            if len(os.listdir(folder)) >= MOST:
                raise Full(f"{self.path} has {MOST} documents: delete some")
            with _beside(folder, name, text) as made:
                try:
                    # a link, unlike a new name, takes no other's place
                    os.link(made, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
                except FileExistsError:
                    raise Problem(f"there is a {name} already") from None
            os.fsync(folder)

    def change(self, name: str, edit: Callable[[str], str]) -> str:
        """Replace a document by what `edit` makes of its text, and return that; `edit` may be called again.

        Raises:
            Problem: there is none, `edit` refuses, or there is no room; then it is as it was.
        """
        with self._writing() as folder:
            for _ in range(_TRIES):
                before = _read(folder, name)
                after = edit(before)
                with _beside(folder, name, after) as made:
                    if _read(folder, name) != before:
                        continue
                    os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
                return after
        raise Problem(f"{name} is being written by another program: try again")

    def remove(self, name: str) -> None:
        """Remove a document.

        Raises:
            NotThere: there is none.
        """
        with self._writing() as folder:
            try:
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                raise NotThere(f"there is no {name}") from None
            os.fsync(folder)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Yield a descriptor of it; each part is opened from the one before, and no link is followed."""
        folder = os.open(self.root, _FOLDER)
        try:
            for part in PurePosixPath(self.path).parts:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise Full("the disk is full: nothing was changed; delete something, and try again") from None
            raise Problem(f"{self.path} cannot be used: {error.strerror}") from None
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[int]:
        """Yield the folder while nobody else writes in it, in this process or another."""
        with self._opened() as folder:
            lock = open_beneath(folder, _LOCK, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield folder
            finally:
                os.close(lock)


def split(path: str, folders: tuple[str, ...], root: Path) -> tuple[Folder, str]:
    """Return the folder below `root` and the name of the document that `path` means; of a folder the name is empty.

    Raises:
        Problem: it lies in none of `folders`, or has a hidden name.
    """
    pure = PurePosixPath(path)
    within = any(f"{pure}/".startswith(folder) for folder in folders)
    if not within or any(part.startswith(".") for part in pure.parts) or "\0" in path:
        raise Problem(f"`{path}` is in none of {', '.join(folders)}")
    is_folder = path.endswith("/") or f"{pure}/" in folders
    return Folder(root, str(pure if is_folder else pure.parent)), "" if is_folder else pure.name


def _read(folder: int, name: str) -> str:
    try:
        with open(name, "rb", opener=partial(open_beneath, folder)) as file:
            content = file.read(LONGEST + 1)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise NotThere(f"there is no {name}") from None
    except OSError as error:
        raise Problem(f"{name} cannot be read: {error.strerror}") from None
    if len(content) > LONGEST:
        raise Malformed(f"{name} has {size >> 10:,} KiB, and may have {LONGEST >> 10}: split it")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{name} is not UTF-8, at byte {error.start}: convert it") from None


@contextlib.contextmanager
def _beside(folder: int, name: str, text: str) -> Iterator[str]:
    """Yield the name of a file with `text` that is on the disk; it is gone afterwards, unless it was renamed."""
    content = text.encode()
    if len(content) > LONGEST:
        raise Full(f"{name} would have {len(content) >> 10:,} KiB, and may have {LONGEST >> 10}: split it")
    made = f".{secrets.token_hex(8)}"
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb", closefd=True) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield made
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made, dir_fd=folder)
