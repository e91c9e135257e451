"""Digests of what the callers of a tool rely on. Standard library only: container health checks import the prober."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LENGTH = 16
_ABSENT = "none"


@dataclass(frozen=True, slots=True)
class ToolContract:
    """Digests of one tool's schemas and annotations (MCP 2025-11-25, Tool); empty where it has none of them.

    `input` is never empty: a tool that breaks the specification and has no schema there is a tool all the same.
    Descriptions are left out: a better word for the same thing breaks nobody.
    """

    input: str
    output: str = ""
    annotations: str = ""


def tool_contract(entry: Mapping[str, Any]) -> ToolContract:
    """Return the contract of one entry of `tools/list`."""
    schema = entry.get("inputSchema")
    return ToolContract(digest(schema) or _ABSENT, digest(entry.get("outputSchema")), digest(entry.get("annotations")))


def digest(value: Any) -> str:
    """Return a short digest of data that JSON can hold, whatever the order of its keys; empty for None."""
    # Sixteen digits: they tell two schemas of one tool apart, and nobody gains by a collision.
    return "" if value is None else hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_LENGTH]
