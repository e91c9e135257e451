"""An application on a free port of this machine."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Literal

import httpx
import uvicorn
from starlette.types import ASGIApp

from pallas_service.http.shutdown import HttpServer
from pallas_testing.model.prompt_server import PromptServer

_UNTRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that ask by HTTP alone: each would read the certificates of all authorities, in 20 ms."""


class _Server(PromptServer, HttpServer):
    """The HTTP server that all services share."""


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of `app`, which is served until the end by the HTTP server that all services share."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Server(app)
        serving = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            async with httpx.AsyncClient(base_url=url, verify=_UNTRUSTING, timeout=60) as client:
                yield client
        finally:  # a test that fails leaves no server to the next
            server.end()
            await serving


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Yield the URL of the standard library's server with this handler, in a thread of its own."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving(app: ASGIApp, *, lifespan: Literal["on", "off"] = "on") -> Iterator[str]:
    """Yield the URL of `app`, which a plain uvicorn serves until the end in a thread of its own."""
    server = PromptServer(uvicorn.Config(app, log_config=None, ws="none", lifespan=lifespan))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.end()
            thread.join()
