"""How many examples property tests draw: all of them in `make test`, a part in `make check`."""

from __future__ import annotations

import os


def examples(count: int) -> int:
    """Return `count`, or a fifth of it where PALLAS_TEST_EXAMPLES is not `all` (tools/test sets it)."""
    return count if os.environ.get("PALLAS_TEST_EXAMPLES") == "all" else count // 5
