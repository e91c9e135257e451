"""How an agent that is up says it is, by its own page of health."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.documents import health
from pallas_contract.probe import http_client, probe


async def condition(member: Member) -> str:
    """Return why an agent is not well, in its own words; empty for one that is, or that cannot be asked."""
    if member.kind != "agent":
        return ""
    url = urlsplit(member.health_url)._replace(path=names.HEALTH_PATH, query="").geturl()
    try:
        async with asyncio.timeout(probe.TIMEOUT):
            response = await http_client.request("GET", url)
    except (OSError, TimeoutError, ValueError, http_client.Unreachable):  # its keeper says of that
        return ""
    answer = health.parse(response.body.decode("utf-8", "replace"))
    return f"{answer[0]}: {answer[1]}" if answer and answer[0] != "ok" else ""
