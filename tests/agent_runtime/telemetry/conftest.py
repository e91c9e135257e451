"""A collector of spans, and a server that is no agent: both keep what they were sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import mcp_types as t
import pytest
from mcp.server import Server

from tests.collector import Collector, running


@pytest.fixture(scope="module")
def collecting() -> Callable[[], AbstractContextManager[Collector]]:
    """For a test with a collector of its own."""
    return running


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running() as made:
        yield made


class Stranger:
    """A server that is no agent; `seen` are the headers and the `_meta` of every request."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        server: Server[Any] = Server("stranger", on_list_tools=self.tools, on_call_tool=self.call)
        self.app = server.streamable_http_app()

    def _note(self, ctx: Any) -> None:
        self.seen.append({"headers": dict(ctx.request.headers), "meta": dict(ctx.meta or {})})

    async def tools(self, ctx: Any, params: Any) -> t.ListToolsResult:
        self._note(ctx)
        return t.ListToolsResult(tools=[t.Tool(name="look", description="x", input_schema={"type": "object"})])

    async def call(self, ctx: Any, params: Any) -> t.CallToolResult:
        self._note(ctx)
        return t.CallToolResult(content=[t.TextContent(type="text", text="seen")])


@pytest.fixture(scope="module")
def stranger(toolkit: Any) -> Iterator[Any]:
    made = Stranger()
    with toolkit.serving(made.app) as url:
        yield SimpleNamespace(url=f"{url}/mcp", seen=made.seen)
