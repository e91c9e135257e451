"""The fleets of the kit that `pallas init --example` copies: in the installed package, or in the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from secrets import token_hex

from pallas_contract import names

_PACKAGE = Path(__file__).parents[1]
_CANDIDATES = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")
_FOLDERS = {
    "hello": "01-hello",
    "pallas": "02-pallas",
    "data-pool": "03-data-pool",
    "percolate": "04-percolate",
    "atlas": "05-atlas",
}
_PATTERNS = (names.AGENTS_FILE, "fastagent.*.yaml", "requirements.*", "agents/*", "standins/*", "tests/**/*.py")
_OWN = (
    *("elsewhere/*", "hosts/*", "percolate/**/*", "documents/**/*", "pytest.ini", "home_tools/**/*", "secrets/*"),
    *("agents.full.yaml", "agents/full/*", "connectors/**/*", "dashboard/*"),
)
"""What single examples have besides."""
_SUFFIXES = frozenset(
    [
        ".py",
        ".md",
        ".yaml",
        ".txt",
        ".pdf",
        ".in",
        ".ini",
        ".lock",
        ".key",
        ".html",
        ".css",
        ".js",
        ".svg",
        ".webmanifest",
    ]
)
QUESTIONS: Mapping[str, tuple[str, str]] = {
    "hello": ("hello", "Good morning"),
    "pallas": ("harper", "Why does every agent get a container of its own?"),
    "data-pool": ("orchestrator", "acme"),
    "percolate": ("percolate_researcher", "Who proved what in 1980?"),
    "atlas": ("family", "How is the weather?"),
}
"""Example -> an agent of it and what to ask it."""
TOKENS: Mapping[str, str] = {"atlas": "secrets/phone.txt"}
"""Example -> the file with the token of who asks, where one has to be shown."""
SECRETS = "secrets"
"""Folder of an example with its secret files."""


def files(example: str) -> dict[PurePosixPath, str]:
    """Return the text of every file of an example by its path in it; its README speaks of the repository.

    Secrets are made anew: everybody knows those of the repository.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    folder = _folder(_FOLDERS[example])
    paths = {PurePosixPath(path.relative_to(folder).as_posix()): path for path in _paths(folder)}
    return {
        name: f"{token_hex(32)}\n" if name.parts[0] == SECRETS else path.read_text("utf-8")
        for name, path in paths.items()
    }


def _folder(name: str) -> Path:
    for candidate in _CANDIDATES:
        if (candidate / name / names.AGENTS_FILE).is_file():
            return candidate / name
    raise FileNotFoundError(2, "the examples are missing from this installation", str(_CANDIDATES[0] / name))


def _paths(folder: Path) -> Iterator[Path]:
    for pattern in (*_PATTERNS, *_OWN):
        yield from sorted(path for path in folder.glob(pattern) if path.suffix in _SUFFIXES and path.is_file())
