"""A test's own MCP connection to a member: never by way of a proxy, with a token where the fleet wants one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pallas_testing.fleet import http

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)
"""Seconds, as the SDK's own client has them: an agent may think long between two bytes."""


@asynccontextmanager
async def connect(url: str, *, era: str = "auto", token: str | None = None) -> AsyncIterator[Client]:
    """Yield a client of the server at `url`, which ends with /mcp.

    `era` is the SDK's `mode`. `token` goes along as a bearer token (RFC 6750). Proxies of the environment are for the
    world; the members of a fleet under test are on this machine.
    """
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=_TIMEOUT, trust_env=False, verify=http.TRUSTS_NOBODY
        ) as http_client,
        Client(streamable_http_client(url, http_client=http_client), mode=era) as client,
    ):
        yield client
