"""The limits of examples/03-data-pool: a function's process has the memory that it is given, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.installed import ROOT
from tests.served import answering

MANY = 600_000
"""Candles that take more than 128 MB as lists of Python."""


class Exchange(BaseHTTPRequestHandler):
    """The one tool of the exchange, in the form of MCP; the symbol is how many candles it has."""

    def do_POST(self) -> None:
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["params"]["arguments"]
        number = arguments["symbol"]
        text = (
            f"[{','.join(['[1.5,2.5,0.5,1.25,100.5]'] * int(number))}]"
            if number.isdigit()
            else "there is no such symbol"
        )
        result = {"content": [{"type": "text", "text": text}], "isError": not number.isdigit()}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"event: message\r\ndata: " + body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def exchange() -> Iterator[str]:
    """The URL of an exchange on a free port."""
    with answering(Exchange) as url:
        yield f"{url}/mcp"


def fetched(exchange: str, symbol: str, megabytes: int, **variables: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of the process that fetches candles."""
    command = [sys.executable, "-m", "agents.bounded", str(megabytes), "agents.ohlcv", exchange, symbol, "1d"]
    env = os.environ | variables
    done = subprocess.run(
        command,
        cwd=ROOT / "examples" / "03-data-pool",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=env,
    )
    return done.returncode, done.stdout, done.stderr


def test_candles_within_the_limit_are_fetched(exchange: str) -> None:
    # no way to the fleet's own members leads through a proxy
    code, output, _ = fetched(exchange, "2", 128, http_proxy="http://127.0.0.1:1", no_proxy="")
    assert (code, json.loads(output)) == (0, {"ohlcv": [[1.5, 2.5, 0.5, 1.25, 100.5]] * 2})


def test_more_than_128_mb_are_refused_and_fit_where_more_is_allowed(exchange: str) -> None:
    assert fetched(exchange, str(MANY), 128) == (1, "", "it needs more than 128 MB\n")
    assert fetched(exchange, str(MANY), 2048)[0] == 0


def test_what_the_exchange_has_against_it_is_one_line(exchange: str) -> None:
    assert fetched(exchange, "NONE", 128) == (1, "", "the exchange: there is no such symbol\n")
