"""How an agent that is up says it is, by its own page of health."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.documents import health
from pallas_contract.documents.reason import SEPARATOR
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
    text = response.body.decode("utf-8", "replace")
    answer = health.parse(text)
    if not answer or answer[0] == "ok":
        return ""
    return SEPARATOR.join([f"{answer[0]}: {answer[1]}", *_reasons(text, answer[1])])


def _reasons(page: str, message: str) -> Iterator[str]:
    """Yield why servers cannot be reached, by the page of health, where `message` does not say it already."""
    document = json.loads(page)  # it was parsed before
    downstream = document.get("downstream")
    for name, entry in (downstream if isinstance(downstream, Mapping) else {}).items():
        failed = isinstance(entry, Mapping) and entry.get("state") == "error" and isinstance(entry.get("reason"), str)
        if failed and f"{SEPARATOR}{name}: " not in message:
            yield f"{name}: {entry['reason']}"
