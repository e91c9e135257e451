"""The process that compares one answer with a schema: it reads `[schema, answer]`, and prints why they do not fit.

Both come from users. A schema of three kilobytes can ask for months of work, by references or a regular expression: the
system bounds it.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from typing import Any

MOST_SECONDS = 5
"""Of processor time."""
MOST_MEMORY = 256 << 20
"""Bytes of address space."""
IMPOSSIBLE = "it cannot be compared with the schema"
_SHOWN = 300


def main() -> None:
    """Print a JSON string, empty where the answer fits."""
    seconds = (MOST_SECONDS, MOST_SECONDS + 5)  # at the first the system says why, at the second it kills
    for limit, values in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))):
        with suppress(ValueError, OSError):  # a system that has no such limit, or a lower one
            resource.setrlimit(limit, values)
    try:
        schema, answer = json.load(sys.stdin)
        reason = _reason(schema, answer)
    except (RecursionError, MemoryError):
        reason = IMPOSSIBLE
    sys.stdout.write(json.dumps(reason))


def _reason(schema: Any, answer: Any) -> str:
    # in this process only, which may come to harm
    from jsonschema import Draft202012Validator, ValidationError  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        Draft202012Validator(schema, registry=Registry()).validate(
            answer
        )  # a registry without anything fetches nothing
    except ValidationError as error:
        where = ".".join(map(str, error.absolute_path))
        return f"{where}: {error.message[:_SHOWN]}" if where else error.message[:_SHOWN]
    except Unresolvable:
        return IMPOSSIBLE
    return ""


if __name__ == "__main__":
    main()
