"""Candles of the exchange as JSON: `python -m agents.ohlcv URL SYMBOL INTERVAL`. No more than Python itself."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.request

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}


def fetch(url: str, symbol: str, interval: str) -> dict[str, list[list[float]]]:
    """Return the candles that the tool of the exchange answers with, in one request of MCP without a session.

    Raises:
        ValueError: the exchange has no such candles, in its words.
    """
    params = {"name": "candles", "arguments": {"symbol": symbol, "interval": interval}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    request = urllib.request.Request(url, json.dumps(message).encode(), _HEADERS)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the exchange is in the fleet
    with opener.open(request) as response:
        events = response.read().decode()
    reply = json.loads(events[events.index("{") :])
    text = reply["result"]["content"][0]["text"]
    if reply["result"].get("isError"):
        raise ValueError(text)
    return {"ohlcv": json.loads(text)}


if __name__ == "__main__":
    try:
        print(json.dumps(fetch(*sys.argv[1:])))
    except (OSError, http.client.HTTPException, ValueError) as error:
        sys.exit(f"the exchange: {error}")
