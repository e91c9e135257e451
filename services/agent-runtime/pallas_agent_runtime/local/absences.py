"""The file that tells the registry of members that are not up, written anew with each change."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from pallas_contract.documents import absence
from pallas_contract.documents.reason import Reason


class AbsenceFile:
    """The file at `path`, whole at any moment somebody reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: str | None = None

    def __call__(self, absences: Mapping[str, Reason]) -> None:
        """Write `absences`, agent -> reason, unless they stand there; a disk that is full stops no fleet."""
        text = absence.dump(absences)
        if text == self._written:
            return
        beside = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, self._path)
            self._written = text
