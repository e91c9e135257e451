"""Lines of problems, as tests of their words compare them."""

from __future__ import annotations

import re

_CODE = re.compile(r" \[PAL\d{3}\]$", re.MULTILINE)


def without_codes(text: str) -> str:
    """Return the lines without the codes at their ends, which tests/invalid has with the words."""
    return _CODE.sub("", text)
