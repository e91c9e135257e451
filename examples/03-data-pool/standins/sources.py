"""Stand-in data sources: `python -m standins.sources NAME` serves the tools of one of them on PALLAS_BIND."""

from __future__ import annotations

import json
import os
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

DAYS = 5
PER_DAY = {"1d": 1, "1h": 24, "1s": 24 * 60 * 60}


def candles(symbol: str, interval: str) -> str:
    """Candles of the last five days, oldest first: open, high, low, close, volume."""
    start = 10.0 * len(symbol)
    days = [[start + day, start + day + 3, start + day - 1, start + day + 2, 1000.0] for day in range(DAYS)]
    return json.dumps([days[number // PER_DAY[interval]] for number in range(DAYS * PER_DAY[interval])])


def headlines(symbol: str) -> str:
    """Headlines of today."""
    return json.dumps([f"{symbol} opens a second data centre", f"Analysts agree about {symbol}"])


def search_knowledge_base(query: str, tenant_id: str, limit: int) -> str:
    """Articles about a symbol, best first; the gateway has checked the arguments."""
    results = [
        {"content": headline, "score": 0.9 - number / 10, "source": f"resource://articles/{number}"}
        for number, headline in enumerate(json.loads(headlines(query)))
    ]
    return json.dumps({"results": results[:limit]})


TOOLS = {"exchange": [candles], "newswire": [headlines, search_knowledge_base]}


def main() -> None:
    name = sys.argv[1]
    server = MCPServer(name, version="1.0.0", log_level="WARNING")
    for tool in TOOLS[name]:
        server.tool(structured_output=False)(tool)
    hosts = os.environ["PALLAS_ALLOWED_HOSTS"].split(",")
    security = TransportSecuritySettings(allowed_hosts=hosts)
    app = server.streamable_http_app(stateless_http=True, transport_security=security)
    address, _, port = os.environ["PALLAS_BIND"].rpartition(":")
    uvicorn.run(app, host=address, port=int(port), log_level="warning", timeout_graceful_shutdown=3)


if __name__ == "__main__":
    main()
