"""Several calls in one request, `tools/call_batch` (seed 002, Batch Operations); no version of MCP has it."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as t
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, Field

from pallas_gateway.own.admission import Context
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers import peer
from pallas_gateway.own.tools import results
from pallas_gateway.own.tools.calls import Calls
from pallas_service.http.disconnect import HungUp

METHOD = "tools/call_batch"
MOST_CALLS = 20
"""Calls in a batch."""
AT_ONCE = 5
"""Calls of a batch that are under way at once."""


class BatchedCall(BaseModel):
    """One call of a batch, as `tools/call` has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    arguments: dict[str, Any] | None = None


class BatchParams(t.RequestParams):
    """Parameters of a batch."""

    calls: list[BatchedCall] = Field(min_length=1, max_length=MOST_CALLS)


class Batches:
    """Batches of what `calls` does one by one."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def call(self, ctx: Context, params: BatchParams) -> dict[str, Any]:
        """Return what each call would have answered by itself, in their order: `result`, or `error`."""
        some = asyncio.Semaphore(AT_ONCE)
        room = peer.MOST

        async def outcome(call: BatchedCall) -> dict[str, Any]:
            nonlocal room
            try:
                async with some:
                    result = await self._calls.call(ctx, call.name, call.arguments or {}, None)
                room -= results.size(result)
                if room < 0:  # all are in memory until the last one is there
                    raise Failed("failed", f"the answers of a batch may have {peer.MOST} bytes together")
            except HungUp:
                raise
            except MCPError as error:
                return {"error": error.error.model_dump(mode="json", by_alias=True, exclude_none=True)}
            return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}

        return {"results": await asyncio.gather(*map(outcome, params.calls))}
