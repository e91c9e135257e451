"""`python -m pallas_contract` in full: any URL, several of them, and waiting until they answer."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.probe import probe, quick

PAUSE = 1.0
"""Seconds between two attempts while waiting."""

Sleep = Callable[[float], Awaitable[None]]


async def check(url: str, *, deep: bool = False) -> str:
    """Return why the URL does not answer as it should; empty when it does. `deep` also calls the tool `get_health`."""
    result = await probe.probe(_target(url, deep=deep))
    return "" if result.reachable else result.reason.message


def _target(url: str, *, deep: bool) -> probe.Target:
    """Return the question that a URL stands for, the one that the registry asks there too."""
    if url.startswith("tcp://"):
        return probe.Target(url, plain="tcp")
    if url.endswith(names.MCP_PATH):
        return probe.Target(url, deep=deep)
    return probe.Target(url, plain="get")


async def wait(
    url: str,
    seconds: float,
    *,
    deep: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Sleep = asyncio.sleep,
) -> str:
    """Return what `check` does, asked again until it is empty or `seconds` of `clock` have passed; at least once."""
    deadline = clock() + seconds
    while True:
        reason = await check(url, deep=deep)
        # A pause that would end after the deadline is not begun: a pod waits no longer than it was told to.
        if not reason or clock() + PAUSE >= deadline:
            return reason
        await sleep(PAUSE)


async def _wait_for_all(urls: Sequence[str], seconds: float, *, deep: bool) -> list[str]:
    return await asyncio.gather(*(wait(url, seconds, deep=deep) for url in urls))


@dataclass(slots=True)
class _Options:
    urls: Sequence[str] = ()
    wait: float = 0.0
    deep: bool = False


def _options(arguments: Sequence[str]) -> _Options:
    """Return what the command line says.

    Raises:
        SystemExit: the arguments are wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m pallas_contract", description="Ask endpoints how they are.")
    parser.add_argument(
        "urls", metavar="URL", nargs="+", help="ending in /mcp: asked in MCP; tcp:: whether it listens; else GET"
    )
    parser.add_argument("--wait", metavar="SECONDS", type=float, default=0.0, help="ask again until they answer")
    parser.add_argument("--deep", action="store_true", help="also call get_health on an MCP endpoint")
    return parser.parse_args(arguments, _Options())


def _explained(url: str, reason: str) -> str:
    if reason != quick.REFUSED:
        return reason
    parts = urlsplit(url)
    return quick.explained(parts.hostname, parts.port or 80, reason)


def main(arguments: Sequence[str]) -> int:
    """Ask every URL of the command line and print what each answers; return the exit code."""
    options = _options(arguments)
    reasons = asyncio.run(_wait_for_all(options.urls, options.wait, deep=options.deep))
    for url, plain in zip(options.urls, reasons, strict=True):
        reason = _explained(url, plain)
        print(f"{url}: {reason or 'ok'}" if len(reasons) > 1 else reason or "ok")
    return 1 if any(reasons) else 0
