"""Host and Origin, before any token is looked at."""

from __future__ import annotations

import httpx
import pytest
from starlette.responses import PlainTextResponse

from pallas_service.access import hosts

APP = hosts.HostCheck(PlainTextResponse("in"), hosts.settings(["gateway:*", "localhost"]))


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("gateway:8080", None, 200),
        ("localhost", "https://localhost", 200),
        ("gateway:8080", "http://gateway:24190", 200),
        ("evil.example", None, 421),
        ("localhost:80", None, 421),
        ("gateway:8080", "http://evil.example", 403),
        ("gateway:8080", "null", 403),
    ],
)
async def test_only_known_hosts_and_origins_enter(host: str, origin: str | None, status: int) -> None:
    headers = {"host": host} | ({"origin": origin} if origin else {})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(APP), base_url="http://x") as client:
        assert (await client.get("/", headers=headers)).status_code == status
