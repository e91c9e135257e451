"""CHANGELOG.md -> the notes of a release."""

from __future__ import annotations

import re


def notes(text: str, version: str) -> str:
    """Return the section of a version without its heading.

    Raises:
        ValueError: there is none, or it says nothing.
    """
    heading = re.search(rf"^## \[{re.escape(version)}\][^\n]*$", text, re.MULTILINE)
    if heading is None:
        raise ValueError(
            f"CHANGELOG.md has no section `## [{version}]`: give what stands under [Unreleased] its version and day"
        )
    section = re.split(r"^## ", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not section:
        raise ValueError(f"CHANGELOG.md says nothing under `## [{version}]`: write what changes for users")
    return f"# pallas-kit {version}\n\n{section}\n"
