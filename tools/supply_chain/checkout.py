"""The checkout that a release is made of: its commit, its locks, and why it may not be one to release."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from .documents import changelog
from .environment import output

EPOCH = "SOURCE_DATE_EPOCH"
_LATEST = 2**32 - 1
"""Seconds; gzip has four bytes for them."""
LOCAL = "urn:pallas-kit:builder:local"


def problems(root: Path, version: str) -> list[str]:
    """Return a sentence for each reason why the checkout is not one to release."""
    lines = []
    if dirty := _git(root, "status", "--porcelain").splitlines():
        more = f" and {len(dirty) - 1} more" if len(dirty) > 1 else ""
        lines.append(f"the checkout is not clean ({dirty[0][3:]}{more}): commit it or take it back, then release")
    try:
        changelog.notes((root / "CHANGELOG.md").read_text("utf-8"), version)
    except ValueError as error:
        lines.append(str(error))
    chart = (root / "deploy/helm/pallas/Chart.yaml").read_text("utf-8")
    for key in ("version", "appVersion"):
        if (written := _value(chart, key)) != version:
            lines.append(
                f"deploy/helm/pallas/Chart.yaml has {key} {written}, and the kit is {version}: make them equal"
            )
    if not re.fullmatch("[0-9]{0,10}", written := os.environ.get(EPOCH, "")) or int(written or "0") > _LATEST:
        lines.append(f"${EPOCH} is {written!r}: it takes whole seconds since 1970, {_LATEST} at most")
    return lines


def foreign(root: Path, packages: Mapping[str, Path]) -> list[str]:
    """Return a sentence for each of the packages, folders by name, that is the code of another checkout."""
    return [
        f"{name} is that of {folder}, not of this checkout ({root}): release with tools/release, in its own environment"
        for name, folder in sorted(packages.items())
        if not folder.resolve().is_relative_to(root.resolve())
    ]


def commit(root: Path) -> str:
    """Return the commit that is checked out."""
    return _git(root, "rev-parse", "HEAD").strip()


def epoch(root: Path) -> int:
    """Return the time of the commit, in seconds since 1970; $SOURCE_DATE_EPOCH is stronger."""
    return int(os.environ.get(EPOCH) or _git(root, "log", "-1", "--format=%ct").strip())


def locks(root: Path) -> list[str]:
    """Return the paths of all locks, and of the Dockerfiles that use them."""
    listed = _git(root, "ls-files", "*.lock", "Dockerfile.*", "tools/shrink.py").splitlines()
    return sorted(path for path in listed if not path.startswith(("tests/", "examples/")))


def builder(env: Mapping[str, str] = os.environ) -> str:
    """Return the URI of who builds: the workflow where one says its name, else somebody's machine."""
    server, workflow = env.get("GITHUB_SERVER_URL"), env.get("GITHUB_WORKFLOW_REF")
    return f"{server}/{workflow}" if server and workflow else LOCAL


def _value(text: str, key: str) -> str:
    match = re.search(rf'^{key}: *"?([^"\n]+)"?$', text, re.MULTILINE)
    return match[1] if match else "none"


def _git(root: Path, *arguments: str) -> str:
    return output("git", *arguments, cwd=root)
