"""How many examples property tests draw: a part in `make check`, all in `make test`, far more in `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_ROUND = os.environ.get("PALLAS_TEST_EXAMPLES")
"""`all` in `make test`, `fuzz` in `make fuzz`."""
FUZZING = _ROUND == "fuzz"


def examples(count: int, fuzz: int | None = None) -> int:
    """Return `count`, or a fifth of it in `make check`; in `make fuzz` `fuzz`, by default twenty times as many."""
    if FUZZING:
        return 20 * count if fuzz is None else fuzz
    return count if _ROUND == "all" else count // 5


def hostile(count: int, fuzz: int | None = None) -> settings:
    """Return how a test of hostile input draws: the same examples each time, but in `make fuzz` by its seed."""
    return settings(
        max_examples=examples(count, fuzz),
        deadline=None,
        derandomize=not FUZZING,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
