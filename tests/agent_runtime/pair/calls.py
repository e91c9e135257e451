"""What the tests of the pair have in common: a call, and what it said."""

from __future__ import annotations

import json
from typing import Any

from mcp import Client

STATELESS = "2026-07-28"
DELEGATED = ["Let me look into that...", "It said: what is pallas?"]


def text_of(result: Any) -> str:
    assert [block.type for block in result.content] == ["text"]
    return str(result.content[0].text)


async def call(
    fleet: Any, era: str, tool: str, arguments: dict[str, Any], agent: str = "harper", **options: Any
) -> Any:
    async with Client(fleet.url(agent), mode=era) as client:
        return await client.call_tool(tool, arguments, **options)


def shown(fleet: Any, status: str) -> dict[str, Any] | None:
    """What harper says of its health once that is `status`."""
    code, body = fleet.get("harper", "/healthz")
    found: dict[str, Any] = json.loads(body)
    return found if (code, found["status"]) == (200, status) else None
