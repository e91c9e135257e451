"""The files of the audit: appended to record by record, continued after any end, bounded in size."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import structlog

from pallas_contract.documents import audit_record
from pallas_contract.documents.audit_record import BEGIN, Link, NotOurs
from pallas_service.sqlite_file import CannotStore

FILES = 8
"""Files that share the size of the audit: with each new one beyond them the oldest is removed."""
_LONGEST = 64 << 10
"""Bytes that no record has: names from outside are cut."""
log = structlog.get_logger(__name__)


class Records(Protocol):
    """A chain of sealed records that is added to: in files of one gateway, or in a database of all."""

    cut: int
    """Bytes of a record without an end that were removed at the start."""
    broken: str
    """Why a new chain was begun at the start; empty where the last one goes on, or there was none."""
    head: Link
    """The last record."""
    forgets: bool
    """Whether what could not be synced once may be lost although a later time is fine."""

    def append(self, fields: Mapping[str, Any]) -> int:
        """Add one record and return its number.

        Raises:
            CannotStore: it is not added.
        """

    @property
    def is_behind(self) -> bool:
        """Return whether a `sync` should not wait for its time."""

    async def kept(self, seq: int) -> None:
        """Wait until the record is kept whatever becomes of this process.

        Raises:
            CannotStore: it may not be.
        """

    async def sync(self) -> None:
        """Wait until all records that are there survive a power cut.

        Raises:
            CannotStore: they may not.
        """

    def close(self) -> None:
        """Let go of what it is kept in."""


class Trail:
    """The audit in one folder, of `size` bytes at most, used by this process alone.

    A record is written with one `write`, in the event loop: it takes some microseconds, and what is forwarded after it
    has its record whatever becomes of this process. Power cuts, and the files that are too many, are for `sync`, which
    waits for the disk in a thread.
    """

    forgets = True

    def __init__(self, folder: Path, key: bytes, *, size: int) -> None:
        """Take the folder, which is made when it is not there, and find the end of the chain.

        Raises:
            CannotStore: it cannot be used, or another gateway uses it.
        """
        self._folder = folder
        self._key = key
        self._most = max(size // FILES, _LONGEST)
        self._file = -1
        self._bytes = 0
        self._torn = False
        self._former: list[int] = []
        self._leaving: list[Path] = []
        self._is_named = True
        self.cut = 0
        """Bytes of a record without an end that were removed at the start."""
        self.broken = ""
        """Why a new chain was begun at the start; empty where the last one goes on, or there was none."""
        self.head = Link(0, BEGIN)
        """The last record."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise self._cannot(error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._continue()
            os.fsync(self._lock)
            self._is_named = True
        except OSError as error:
            os.close(self._lock)
            if error.errno == errno.EWOULDBLOCK:
                raise CannotStore(f"{folder}: another gateway uses it") from None
            raise self._cannot(error) from None

    def append(self, fields: Mapping[str, Any]) -> int:
        """Write one record and return its number.

        Raises:
            CannotStore: it is not written; nothing of it stays in the file.
        """
        try:
            if self._bytes > self._most or self._is_removed():
                self._begin_file()
            return self._write(fields)
        except OSError as error:
            raise self._cannot(error) from None

    async def kept(self, seq: int) -> None:
        """Wait for nothing: what was written is the kernel's."""

    async def sync(self) -> None:
        """Wait until all records that are there survive a power cut.

        Raises:
            CannotStore: they may not.
        """
        leaving, self._leaving = self._leaving, []
        named, self._is_named = self._is_named, True
        former, self._former = self._former, []
        try:
            # meanwhile another file may be begun
            await asyncio.to_thread(self._sync, [*former, os.dup(self._file)], leaving, named=named)
        except OSError as error:
            self._leaving = leaving + self._leaving
            self._is_named = self._is_named and named
            raise self._cannot(error) from None

    @property
    def is_behind(self) -> bool:
        """Return whether a file was begun since the last `sync`: the one before is to be synced, or one to go."""
        return bool(self._former or self._leaving)

    def close(self) -> None:
        """Let go of the files, once those are removed that are too many."""
        for file in (*self._former, self._file):
            os.close(file)
        with suppress(OSError):  # the next start finds them, and what is recorded of them
            for path in self._leaving:
                path.unlink()
        os.close(self._lock)

    def _sync(self, files: list[int], leaving: list[Path], *, named: bool) -> None:
        """Have `files` and their names survive a power cut, close them, and remove those that are `leaving`."""
        trouble: OSError | None = None
        for file in files:
            try:
                os.fdatasync(file)
            except OSError as error:
                trouble = trouble or error
            finally:
                os.close(file)
        if not named:
            os.fsync(self._lock)
        if trouble:
            raise trouble
        # what says that they are gone is on disk by now
        for path in leaving:
            path.unlink(missing_ok=True)

    def _write(self, fields: Mapping[str, Any]) -> int:
        if self._torn:
            os.ftruncate(self._file, self._bytes)
            self._torn = False
        line, link = audit_record.sealed(self._key, fields, self.head)
        written = 0
        try:
            written = os.write(self._file, line)
        finally:
            if written != len(line):
                self._torn = True
                with suppress(OSError):
                    os.ftruncate(self._file, self._bytes)
                    self._torn = False
        if written != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._bytes += written
        self.head = link
        return link.seq

    def _continue(self) -> None:
        """Open the newest file for its next record, without a record in it that has no end."""
        for path in reversed(self._files()):
            self._open(path)
            last = self._last_line()
            if last is None:
                continue  # what is in it, if anything, was never a whole record
            try:
                entry = audit_record.opened(self._key, last)
                self.head = entry.link
            except NotOurs as error:
                first = audit_record.first_of(path.name) or 1
                self.broken = f"the last record of {path.name} {error}"
                log.error("the audit is continued in a new chain", reason=self.broken)
                self.head = Link(first + self._lines(path) - 1, BEGIN)
                self._open(self._folder / audit_record.file_name(self.head.seq + 1))
            return
        if self._file < 0:
            self._open(self._folder / audit_record.file_name(1))

    def _begin_file(self) -> None:
        """Go on in a new file; the one before is synced, and the oldest of those that are too many go, with `sync`."""
        former = os.dup(self._file)
        try:
            self._open(self._folder / audit_record.file_name(self.head.seq + 1))
        except OSError:
            os.close(former)
            raise
        self._former.append(former)
        files = [path for path in self._files() if path not in self._leaving]
        for path, following in pairwise(files[: 1 - FILES]):
            # written before it is done: who finds the file gone finds the reason
            self._write({"event": "dropped", "until": (audit_record.first_of(following.name) or 1) - 1})
            self._leaving.append(path)

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.iterdir() if audit_record.first_of(path.name) is not None)

    def _open(self, path: Path) -> None:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._file >= 0:
            os.close(self._file)
        self._file = file
        self._is_named = False  # on disk: whether its name survives a power cut too
        self._bytes = os.fstat(file).st_size

    def _is_removed(self) -> bool:
        return os.fstat(self._file).st_nlink == 0

    def _last_line(self) -> bytes | None:
        """Return the last line of the open file, and cut off what follows it; None where there is none."""
        start = max(0, self._bytes - _LONGEST)
        text = os.pread(self._file, self._bytes - start, start)
        whole = text.rfind(b"\n") + 1
        if start and not whole:
            return text  # no record is that long, so nothing is cut off
        if whole < len(text):
            self.cut += len(text) - whole
            os.ftruncate(self._file, start + whole)
            self._bytes = start + whole
        return text[:whole].removesuffix(b"\n").rpartition(b"\n")[2] if whole else None

    def _lines(self, path: Path) -> int:
        with path.open("rb") as file:
            return sum(1 for _ in file)

    def _cannot(self, error: OSError) -> CannotStore:
        return CannotStore(f"{self._folder}: {(error.strerror or str(error)).lower()}")
