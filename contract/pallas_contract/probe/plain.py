"""Questions that are no MCP: a GET that is answered with 200, and a connection that is taken."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from pallas_contract.documents.reason import Reason
from pallas_contract.probe import http_client
from pallas_contract.probe.session import ProbeEnded, Target, raise_for_status


async def ask(target: Target) -> None:
    """Return when `target` is up, by the question that `target.plain` says.

    Raises:
        ProbeEnded: it answers, but not with 200.
        Unreachable: nobody answers, or with something that is no HTTP.
        ValueError: it has no such URL.
    """
    await (_connect(target) if target.plain == "tcp" else _get(target))


async def _get(target: Target) -> None:
    # the status says it all, and a page may have no end
    response = await http_client.request("GET", target.url, address=target.address, is_complete=lambda _: True)
    if response.status != 503:  # how a page of health says "down"; an MCP server says "later" with it
        raise_for_status(response)
    if response.status != 200:
        raise ProbeEnded("error", Reason("HttpError", f"HTTP {response.status}"), response.status)


async def _connect(target: Target) -> None:
    parts = urlsplit(target.url)
    try:
        _, writer = await asyncio.open_connection(target.address or parts.hostname, parts.port)
    except OSError as error:
        raise http_client.unreachable(error) from None
    writer.transport.abort()
