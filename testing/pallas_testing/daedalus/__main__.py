"""`python -m pallas_testing.daedalus [REGISTRY_URL ...]`: serve Daedalus on 127.0.0.1:8000, these instances attached.

`DAEDALUS_MCP_HEALTH_INTERVAL` is the seconds between two health checks (60), `--port` another port.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import uvicorn

from pallas_testing.daedalus.client import Daedalus, interval
from pallas_testing.daedalus.registry import NotARegistry
from pallas_testing.daedalus.web import create_app

WORKSPACE = "home"


def main() -> int:
    """Exit code 0 when told to stop, 1 for the world, 2 for what the user wrote."""
    parser = argparse.ArgumentParser(prog="python -m pallas_testing.daedalus", description=__doc__)
    parser.add_argument("registry_url", nargs="*")
    parser.add_argument("--port", type=int, default=8000)
    chosen = parser.parse_args()
    try:
        daedalus = Daedalus(interval())
    except ValueError as error:
        print(f"daedalus: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(daedalus, chosen.registry_url, chosen.port))
    except NotARegistry as error:
        print(f"daedalus: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


async def _serve(daedalus: Daedalus, urls: list[str], port: int) -> None:
    for url in urls:
        instance = await daedalus.register(url)
        for made in await daedalus.attach(WORKSPACE, instance.name):
            health = daedalus.health(made)
            print(f"{made.agent.title}: {health.badge} {health.message}".rstrip())
    config = uvicorn.Config(create_app(daedalus), host="127.0.0.1", port=port, log_level="warning")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    sys.exit(main())
