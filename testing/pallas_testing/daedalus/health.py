"""What an agent says of itself when asked with `get_health`, and what Daedalus makes of it (seed 000 sections 2, 3)."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from mcp import Client

Status = Literal["ok", "degraded", "error"]

TOOL = "get_health"
TIMEOUT = 10.0
"""Seconds for one check, the connection included. An agent needs under one; on a slow machine a session takes long."""
GAUGE: dict[Status, float] = {"ok": 1.0, "degraded": 0.5, "error": 0.0}
BADGE: dict[Status, str] = {"ok": "green", "degraded": "yellow", "error": "red"}


@dataclass(frozen=True, slots=True)
class Health:
    """The last thing known of an agent. `message` explains what is not ok."""

    status: Status
    message: str = ""
    timestamp: str = ""

    @property
    def badge(self) -> str:
        return BADGE[self.status]

    @property
    def banner(self) -> str:
        """The warning bar over the chat; empty when there is none."""
        return self.message if self.status == "degraded" else ""

    @property
    def blocks_chat(self) -> bool:
        return self.status == "error"


UNKNOWN = Health("error", "not checked yet")


async def check(
    url: str, *, timeout: float = TIMEOUT, connection: AbstractAsyncContextManager[Client] | None = None
) -> Health:
    """Ask once. Never raises for anything the agent does: a check that fails entirely is an `error`.

    `connection` takes the place of one to `url` with the SDK's own settings.
    """
    try:
        async with asyncio.timeout(timeout), connection or Client(url) as client:
            result = await client.call_tool(TOOL)
        texts = [block.text for block in result.content if block.type == "text"]
        return parse(texts[0]) if len(texts) == len(result.content) == 1 else Health("error", "not a single text block")
    except TimeoutError:
        return Health("error", f"no answer in {timeout:g} s")
    except Exception as error:  # the SDK raises whatever its transport does, alone or in groups
        return Health("error", f"health check failed: {root(error)}")


def parse(text: str) -> Health:
    """Return the JSON object in the tool's answer; anything else is an `error`."""
    try:
        said = json.loads(text)
        status = said["status"]
        if status not in GAUGE:
            return Health("error", f"unknown health status: {status!r}"[:200])
        return Health(status, str(said.get("message", "")), str(said.get("timestamp", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Health("error", "the answer of get_health is not a health document")


def root(error: BaseException) -> str:
    """Return what went wrong first, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
