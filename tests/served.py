"""An application on a free port of this machine, behind the HTTP server that all services share."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.types import ASGIApp

from pallas_service.http.shutdown import HttpServer


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of `app`, which is served until the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HttpServer(app)
        serving = asyncio.create_task(server.serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url) as client:
            yield client
        server.should_exit = True
        await serving
