"""An agent of somebody else, no member of the fleet: it registers itself, and sends heartbeats (docs/registration.md).

`python -m elsewhere.data_cleaner` in the folder of agents.yaml; Ctrl-C takes it out of the registry again.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

AGENT = "data_cleaner"
CAPABILITIES = {
    "tools": ["clean_data"],
    "schema": {
        "clean_data": {"input": {"ohlcv": "list[list[float]]"}, "output": {"ohlcv": "list[list[float]]"}},
    },
}
NOT_REGISTERED = -32012
"""The registry has ended the registration, or was started anew without a file of them."""
SECONDS = 10
"""Patience with the registry."""


def clean_data(ohlcv: list[list[float]]) -> dict[str, Any]:
    """Return the candles whose prices are numbers above zero, with the others between low and high."""
    return {"ohlcv": [candle for candle in ohlcv if _is_sound(candle)]}


def _is_sound(candle: list[float]) -> bool:
    if len(candle) < 4:
        return False
    opened, high, low, closed, *_ = candle
    return all(map(math.isfinite, candle)) and 0 < low <= min(opened, closed) <= max(opened, closed) <= high


class Registration:
    """This agent in a registry, at `url`, with heartbeats every `interval` seconds."""

    def __init__(self, registry: str, token: str, url: str, interval: float) -> None:
        self._registry = registry
        self._token = token
        self._about = {"url": url, "heartbeat_interval": interval, "capabilities": CAPABILITIES}
        self._registered = False

    def beat(self) -> None:
        """Send a heartbeat, or register where the registry does not know the agent; what goes wrong is printed."""
        try:
            if self._registered and self.ask("agent.heartbeat", status="active") != NOT_REGISTERED:
                return
            self._registered = not self.ask("server.register", **self._about)
            print(f"{AGENT}: {'registered' if self._registered else 'refused'} at {self._registry}", flush=True)
        except OSError as error:  # it may come back
            self._complain(error)

    def leave(self) -> None:
        """Say good-bye to the registry, if it is there."""
        try:
            self.ask("server.deregister")
        except OSError as error:  # it misses the heartbeats, then
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        print(f"{AGENT}: no registry at {self._registry}: {error}", file=sys.stderr, flush=True)

    def ask(self, method: str, **params: Any) -> int:
        """Return the code of the registry's answer to one message, 0 where it agrees.

        Raises:
            OSError: there is no answer.
        """
        message = {"method": method, "params": {"agent_id": AGENT, **params}}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(f"{self._registry}/mcp", json.dumps(message).encode(), headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=SECONDS):
                return 0
        except urllib.error.HTTPError as error:
            code, text = _error(error)
        except http.client.HTTPException as error:
            raise OSError(f"it speaks no HTTP: {error}") from None
        if code != NOT_REGISTERED:
            print(f"{AGENT}: {text} ({code})", file=sys.stderr, flush=True)
        return code


def _error(response: urllib.error.HTTPError) -> tuple[int, str]:
    """Return code and text of the registry's error.

    Raises:
        OSError: something else has answered.
    """
    try:
        error = json.load(response)["error"]
        return int(error["code"]), str(error["message"])
    except (http.client.HTTPException, ValueError, LookupError, TypeError):
        raise OSError(f"what answers is no registry: HTTP {response.code}") from None


def served(listener: socket.socket) -> uvicorn.Server:
    """Return the server of `clean_data` on a socket that is bound."""
    server = MCPServer(AGENT, version="1.0.0", log_level="WARNING")
    server.tool()(clean_data)
    hosts = [f"{listener.getsockname()[0]}:*", "localhost:*"]
    security = TransportSecuritySettings(allowed_hosts=hosts)
    app = server.streamable_http_app(stateless_http=True, transport_security=security)
    return uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))


def main() -> None:
    """Serve, register and send heartbeats until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--registry", default="http://localhost:24300")
    parser.add_argument("--token-file", type=Path, default=Path("secrets/data_cleaner.txt"))
    parser.add_argument("--port", type=int, default=24351, help="0: any that is free (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=10, help="seconds between heartbeats (default: %(default)s)")
    options = parser.parse_args()
    try:
        token = options.token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        parser.error(f"no token: {error}; the last lines of agents.yaml say how to make one")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with socket.create_server(("127.0.0.1", options.port)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        server = served(listener)
        serving = threading.Thread(target=server.run, args=([listener],))
        serving.start()
        registration = Registration(options.registry, token, url, options.interval)
        try:
            registration.beat()
            while not stop.wait(options.interval):
                registration.beat()
            registration.leave()
        finally:
            server.should_exit = True
            serving.join()


if __name__ == "__main__":
    main()
