"""The extras of the distribution: a command that needs one which was not installed says so in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

DISTRIBUTION = "pallas-kit"

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def missing(*extras: str, distribution: str = DISTRIBUTION) -> list[str]:
    """Return the packages of `extras` that are not installed, sorted.

    It is empty where the distribution itself is not installed: an image has its code alone.
    """
    from importlib import metadata  # noqa: PLC0415 - `--help` needs none of it

    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return []
    return sorted({name for name in _packages(requirements, extras) if not _installed(name)})


def advice(command: str, extra: str, packages: Iterable[str]) -> str:
    """Return the line, with its end, for a `command` that needs `extra`, of which `packages` are not installed."""
    names = ", ".join(packages)
    return f"{command}: needs the extra `{extra}` (not installed: {names}): pip install '{DISTRIBUTION}[{extra}]'\n"


def _packages(requirements: Iterable[str], extras: Iterable[str]) -> Iterator[str]:
    for requirement in requirements:
        marker = _EXTRA.search(requirement)
        name = _NAME.match(requirement)
        if marker and name and marker[1] in extras and name[0] != DISTRIBUTION:
            yield name[0]


def _installed(package: str) -> bool:
    from importlib import metadata  # noqa: PLC0415 - see above

    try:
        metadata.distribution(package)  # which reads nothing of it, as `version` would
    except metadata.PackageNotFoundError:
        return False
    return True
