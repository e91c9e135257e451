"""The tools, by their names; tools.yaml says which of them are served, and what a model reads about each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp_types import CallToolResult, TextContent

Tool = Callable[..., Awaitable[Any]]
Tools = Mapping[str, Tool]


def both(text: str, data: Mapping[str, Any]) -> CallToolResult:
    """Return a result as text for a model, and as data for a program."""
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=dict(data))
