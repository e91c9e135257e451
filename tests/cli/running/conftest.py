"""A stand-in for docker, which writes down how it was called."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

DOCKER = """\
#!/bin/sh
case "$*" in ps*id=abc*) printf '%s' "$MADE_BY"; exit 0 ;; ps*kind=registry*)
  printf '%s' "$REGISTRIES"; printf '%s' "$REFUSAL" >&2; test -z "$REFUSAL"; exit ;;
esac
echo "$(basename "$0") $*" >> "$LOG"
case " $* " in
  *" ps "*) printf '%s' "$CONTAINERS" ;;
  *" logs "*) printf '%s' "$LINES_OF_LOGS" ;;
esac
exit "$CODE"
"""
"""Whose containers these are, and which registries there are, is asked besides and not written down."""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Put stand-ins for docker and kubectl first on PATH; return how they were called so far."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("docker", "kubectl"):
        (folder / name).write_text(DOCKER)
        (folder / name).chmod(0o755)
    log = tmp_path / "tools.log"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    for name in ("MADE_BY", "REGISTRIES", "REFUSAL"):
        monkeypatch.setenv(name, "")
    for name, value in (("LOG", str(log)), ("CONTAINERS", "abc\n"), ("CODE", "0")):
        monkeypatch.setenv(name, value)
    return lambda: log.read_text().splitlines() if log.exists() else []
