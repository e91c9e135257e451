"""Connecting the MCP servers that an agent uses, before a turn and within one deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from fast_agent.core.agent_app import AgentApp

log = structlog.get_logger(__name__)

TIMEOUT = 5.0
"""Seconds to connect what is missing before a turn goes on without it, all servers together."""

Choose = Callable[[Iterable[str]], list[str]]
"""Those of some servers that are worth trying, the most promising first."""


async def attach(app: AgentApp, forwarded: frozenset[str], choose: Choose) -> None:
    """Connect the servers the agents use but for `forwarded`; one that is down is tried again on a later turn.

    Outside any caller's context: a connection made inside it would carry that caller's credentials to the next.
    """
    registered: Any = app.registered_agents()
    users = {name: set(agent.config.servers) - forwarded for name, agent in registered.items() if agent.config.servers}
    end = asyncio.get_running_loop().time() + TIMEOUT
    await asyncio.gather(*(_attach_missing(app, agent, wanted, choose, end) for agent, wanted in users.items()))


async def _attach_missing(app: AgentApp, agent: str, wanted: set[str], choose: Choose, end: float) -> None:
    """One after the other, as fast-agent does under a lock in any case.

    Each has its share of the time that is left: one that hangs takes none of the next one's.
    """
    attached = await app.list_attached_mcp_servers(agent)  # which can be asked of those that use servers only
    tried = choose(wanted - set(attached))
    for left, server in zip(range(len(tried), 0, -1), tried, strict=True):
        now = asyncio.get_running_loop().time()
        await _attach_one(app, agent, server, now + (end - now) / left)


async def _attach_one(app: AgentApp, agent: str, server: str, end: float) -> None:
    try:
        async with asyncio.timeout_at(end):
            await app.attach_mcp_server(agent, server)
    except Exception as error:
        log.warning("server_not_attached", server=server, error=type(error).__name__)
