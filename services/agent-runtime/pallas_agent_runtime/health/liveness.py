"""Whether an MCP server that the agent has started answers: the system tells of its end, and nobody that it hangs."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import mcp_types as t
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PING = 30.0
"""Seconds between two questions to a program that has no call under way, and those that it has for an answer."""


class Connection(Protocol):
    """What is needed of fast-agent's connection to a server; `session` is the SDK's."""

    @property
    def protocol_version(self) -> str: ...

    @property
    def session(self) -> Any: ...

    async def ping(self) -> object: ...


async def answered(connection: Connection) -> None:
    """Wait until the server of `connection` answers anything, be it an error; for ever once that is closed."""
    while True:
        try:
            await _ask(connection)
        except MCPError as error:
            if error.code == t.CONNECTION_CLOSED:
                await asyncio.Event().wait()
            if error.code != t.REQUEST_TIMEOUT:
                return
            await asyncio.sleep(PING)  # each question stays in the program's input until it reads on
        except ValueError:  # no answer of the protocol, but one
            return
        else:
            return


async def _ask(connection: Connection) -> None:
    """Ask what costs least: the era of 2026-07-28 has no ping."""
    version = connection.protocol_version
    if version in MODERN_PROTOCOL_VERSIONS:
        await connection.session.send_discover(version)
    else:
        await connection.ping()
