"""`python -m pallas_contract URL...`: the probe of a healthcheck, of a pod that waits, and of a chart's test.

Exit 0 when every URL answers as it should, 1 when one does not, 2 for wrong arguments.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.probe import probe

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


def _explained(url: str, reason: str) -> str:
    """Return `reason` with what it means of the own container: its program listens elsewhere, or not yet."""
    parts = urlsplit(url)
    if reason != "connection refused" or parts.hostname not in names.LOCAL_HOSTS:
        return reason
    return f"nobody listens on {parts.port or 80}; the program must listen on {names.ENV_BIND}"


@dataclass(slots=True)
class _Options:
    urls: Sequence[str] = ()
    wait: float = 0.0
    deep: bool = False


def _options(arguments: Sequence[str]) -> _Options:
    """Return what the command line says.

    A health check has URLs alone, every few seconds in every container: to load a parser would be a tenth of its cost.

    Raises:
        SystemExit: the arguments are wrong.
    """
    if arguments and all("://" in argument and not argument.startswith("-") for argument in arguments):
        return _Options(arguments)
    import argparse  # noqa: PLC0415 - see above

    parser = argparse.ArgumentParser(prog="python -m pallas_contract", description="Ask endpoints how they are.")
    parser.add_argument(
        "urls", metavar="URL", nargs="+", help="ending in /mcp: asked in MCP; tcp:: whether it listens; else GET"
    )
    parser.add_argument("--wait", metavar="SECONDS", type=float, default=0.0, help="ask again until they answer")
    parser.add_argument("--deep", action="store_true", help="also call get_health on an MCP endpoint")
    return parser.parse_args(arguments, _Options())


def main() -> int:
    """Ask every URL of the command line and print what each answers; return the exit code."""
    options = _options(sys.argv[1:])
    reasons = asyncio.run(_wait_for_all(options.urls, options.wait, deep=options.deep))
    for url, plain in zip(options.urls, reasons, strict=True):
        reason = _explained(url, plain)
        print(f"{url}: {reason or 'ok'}" if len(reasons) > 1 else reason or "ok")
    return 1 if any(reasons) else 0


if __name__ == "__main__":
    sys.exit(main())
