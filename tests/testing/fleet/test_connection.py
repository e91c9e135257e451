"""A test's own connection: by no proxy of the environment, and with the caller's token."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pallas_testing.daedalus import health
from pallas_testing.fleet.agent import Agent
from pallas_testing.fleet.connection import connect


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """Yield a server that refuses everybody, and the tokens it was shown."""
    tokens = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            tokens.append(self.headers.get("authorization", "none"))
            self.send_error(403)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp", tokens
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("token", "expected"), [(None, "none"), ("abc", "Bearer abc")])
def test_it_goes_straight_to_the_agent_with_its_token(
    requests: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, token: str | None, expected: str
) -> None:
    url, tokens = requests
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    result = asyncio.run(health.check(url, connection=connect(url, token=token)))
    assert result.status == "error"
    with pytest.raises(Exception, match=r"."):
        Agent("harper", url, {}, print).ask("hello", token=token)
    assert len(tokens) >= 2
    assert set(tokens) == {expected}
