"""CHANGELOG.md: what is unreleased becomes the section of a version, and that the notes of its release."""

from __future__ import annotations

import re
from datetime import date


def notes(text: str, version: str) -> str:
    """Return the section of a version without its heading.

    Raises:
        ValueError: there is none, or it says nothing.
    """
    heading = re.search(rf"^## \[{re.escape(version)}\][^\n]*$", text, re.MULTILINE)
    if heading is None:
        raise ValueError(
            f"CHANGELOG.md has no section `## [{version}]`: `make release ARGS=--prepare` gives what stands under "
            "[Unreleased] its version and day; commit it"
        )
    section = re.split(r"^## ", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not section:
        raise ValueError(f"CHANGELOG.md says nothing under `## [{version}]`: write what changes for users")
    return f"# pallas-kit {version}\n\n{section}\n"


def dated(text: str, version: str, day: date) -> str:
    """Return the text with what stands under [Unreleased] as the section of a version, and nothing under that.

    Raises:
        ValueError: the version has a section already, or nothing is unreleased.
    """
    if re.search(rf"^## \[{re.escape(version)}\]", text, re.MULTILINE):
        raise ValueError(f"CHANGELOG.md has a section `## [{version}]`: give the kit its next version first")
    heading = re.search(r"^## \[Unreleased\][^\n]*\n", text, re.MULTILINE)
    if heading is None or not re.split(r"^## ", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip():
        raise ValueError("CHANGELOG.md says nothing under `## [Unreleased]`: write there what changes for users")
    return f"{text[: heading.end()]}\n## [{version}] - {day.isoformat()}\n{text[heading.end() :]}"
