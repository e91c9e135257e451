"""The packages that a project says it needs: names in requirements.txt and pyproject.toml beside agents.yaml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAME = re.compile(r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)")


def packages(folder: Path) -> frozenset[str]:
    """Return the names as they are written. A file that cannot be read names none: whoever installs it says so."""
    lines = [*_lines(folder / "requirements.txt"), *_dependencies(folder / "pyproject.toml")]
    return frozenset(match["name"] for line in lines if (match := _NAME.match(line)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _dependencies(path: Path) -> Iterator[str]:
    try:
        project: Any = tomllib.loads("\n".join(_lines(path))).get("project", {})
    except tomllib.TOMLDecodeError:
        return
    listed = project.get("dependencies") if isinstance(project, dict) else None
    yield from (entry for entry in listed if isinstance(entry, str)) if isinstance(listed, list) else ()
