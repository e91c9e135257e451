"""`python -m pallas_contract URL...`: the probe of a healthcheck, of a pod that waits, and of a chart's test.

Exit 0 when every URL answers as it should, 1 when one does not, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from pallas_contract import names
from pallas_contract.probe import http_client, probe

PAUSE = 1.0
"""Seconds between two attempts while waiting."""


async def check(url: str, *, deep: bool = False) -> str:
    """Empty when the URL answers as it should, else the reason. `deep` also calls the tool `get_health`."""
    if url.endswith(names.MCP_PATH):
        result = await probe.probe(probe.Target(url, deep=deep))
        return "" if result.reachable else result.reason.message
    try:
        async with asyncio.timeout(probe.TIMEOUT):
            reply = await http_client.request("GET", url, enough=lambda _: True)
    except TimeoutError:
        return f"no answer in {probe.TIMEOUT:g} s"
    except (http_client.Unreachable, ValueError) as error:
        return str(error)
    return "" if reply.status == 200 else f"HTTP {reply.status}"


async def wait(url: str, seconds: float, *, deep: bool = False) -> str:
    """`check`, repeated until it is empty or `seconds` have passed; at least once."""
    deadline = time.monotonic() + seconds
    while True:
        reason = await check(url, deep=deep)
        if not reason or time.monotonic() + PAUSE >= deadline:
            return reason
        await asyncio.sleep(PAUSE)


async def _all(urls: list[str], seconds: float, deep: bool) -> list[str]:
    return await asyncio.gather(*(wait(url, seconds, deep=deep) for url in urls))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pallas_contract", description="Ask endpoints how they are.")
    parser.add_argument("urls", metavar="URL", nargs="+", help="ending in /mcp: asked in MCP; any other: with GET")
    parser.add_argument("--wait", metavar="SECONDS", type=float, default=0.0, help="ask again until they answer")
    parser.add_argument("--deep", action="store_true", help="also call get_health on an MCP endpoint")
    chosen = parser.parse_args()
    reasons = asyncio.run(_all(chosen.urls, chosen.wait, chosen.deep))
    for url, reason in zip(chosen.urls, reasons, strict=True):
        print(f"{url}: {reason or 'ok'}" if len(reasons) > 1 else reason or "ok")
    return 1 if any(reasons) else 0


if __name__ == "__main__":
    sys.exit(main())
