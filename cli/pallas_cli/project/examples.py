"""The fleets of the kit that `pallas init --example` copies: in the installed package, or in the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from pallas_contract import names

_PACKAGE = Path(__file__).parents[1]
_CANDIDATES = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")
_FOLDERS = {"hello": "01-hello", "pallas": "02-pallas", "data-pool": "03-data-pool", "percolate": "04-percolate"}
_PATTERNS = (names.AGENTS_FILE, "fastagent.*.yaml", "requirements.*", "agents/*", "standins/*", "tests/**/*.py")
_OWN = ("elsewhere/*", "hosts/*", "percolate/**/*", "documents/**/*", "pytest.ini")
"""What single examples have besides."""
_SUFFIXES = frozenset({".py", ".md", ".yaml", ".txt", ".pdf", ".in", ".ini", ".lock"})
QUESTIONS: Mapping[str, tuple[str, str]] = {
    "hello": ("hello", "Good morning"),
    "pallas": ("harper", "Why does every agent get a container of its own?"),
    "data-pool": ("orchestrator", "acme"),
    "percolate": ("percolate_researcher", "Who proved what in 1980?"),
}
"""Example -> an agent of it and what to ask it."""


def files(example: str) -> dict[PurePosixPath, str]:
    """Return the text of every file of an example by its path in it; its README speaks of the repository.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    folder = _folder(_FOLDERS[example])
    return {PurePosixPath(path.relative_to(folder).as_posix()): path.read_text("utf-8") for path in _paths(folder)}


def _folder(name: str) -> Path:
    for candidate in _CANDIDATES:
        if (candidate / name / names.AGENTS_FILE).is_file():
            return candidate / name
    raise FileNotFoundError(2, "the examples are missing from this installation", str(_CANDIDATES[0] / name))


def _paths(folder: Path) -> Iterator[Path]:
    for pattern in (*_PATTERNS, *_OWN):
        yield from sorted(path for path in folder.glob(pattern) if path.suffix in _SUFFIXES and path.is_file())
