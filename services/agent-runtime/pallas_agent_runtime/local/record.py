"""What a running fleet leaves for other commands: that it runs, and what it has printed, beside agents.yaml.

A folder that cannot be written to has neither; the fleet runs all the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from pallas_contract.launch import run_files
from pallas_contract.launch.run_files import RunFiles

LONGEST = 10 * 1024 * 1024
"""Characters of output after which the file is put aside, in the place of the one before."""


class Log:
    """The output of a run, a line each: name of the member, `|` for its own output or `:` for what is said of it."""

    def __init__(self, files: RunFiles, longest: int = LONGEST) -> None:
        """Begin with a file of its own, and none of an earlier run; who follows that one sees that it is another.

        Raises:
            OSError: it cannot be written.
        """
        self._files = files
        self._longest = longest
        files.log.unlink(missing_ok=True)
        files.older_log.unlink(missing_ok=True)
        self._file = self._begun()
        self._size = 0

    def write(self, name: str, mark: str, text: str) -> None:
        """Add a line, or several; a disk that is full stops no fleet."""
        lines = "".join(f"{name} {mark} {line}\n" for line in text.splitlines() or [""])
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed by a rotation that failed
            if self._size + len(lines) > self._longest:
                self._file.close()
                os.replace(self._files.log, self._files.older_log)
                self._file = self._begun()
                self._size = 0
            self._file.write(lines)
            self._file.flush()
            self._size += len(lines)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def _begun(self) -> TextIO:
        descriptor = os.open(self._files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        return open(descriptor, "w", encoding="utf-8", errors="replace")


@contextlib.contextmanager
def running(config: Path, registry: str = "") -> Iterator[Log | None]:
    """Hold the lock of the fleet file at `config`; yield the log of the run, None where there can be none.

    `registry` is the URL at which others find the fleet while its file cannot be read.
    """
    files = run_files.of(config)
    with contextlib.ExitStack() as stack:
        log = None
        with contextlib.suppress(OSError):
            files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (files.folder / ".gitignore").write_text("*\n", encoding="utf-8")
            if stack.enter_context(run_files.locked(files.lock, registry)):
                log = Log(files)
                stack.callback(log.close)
        yield log
