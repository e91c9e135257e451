"""What an agent that is up says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from pallas_agent_runtime.local.condition import condition
from pallas_agent_runtime.local.programs import Member


async def asked(member: Member, body: str, status: str = "200 OK") -> tuple[str, list[str]]:
    """Return the condition of an agent whose page of health has `body`, and the first lines of what it was asked."""
    lines = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readline()).decode().strip())
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(f"{head}{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        return await condition(replace(member, health_url=f"http://127.0.0.1:{port}/readyz")), lines


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ('{"status": "ok", "timestamp": "x"}', "200 OK", ""),
        ('{"status": "degraded", "message": "Unreachable: notes"}', "200 OK", "degraded: Unreachable: notes"),
        ('{"status": "error", "message": "Cannot process"}', "503 Service Unavailable", "error: Cannot process"),
        (
            '{"status": "degraded", "message": "Unreachable: a, b; b: not started", "downstream": {'
            '"a": {"state": "error", "reason": "connection refused"}, "b": {"state": "error", "reason": "x"},'
            ' "c": {"state": "ok", "reason": ""}}}',
            "200 OK",
            "degraded: Unreachable: a, b; b: not started; a: connection refused",
        ),
        ('{"status": "degraded", "message": "m", "downstream": [1]}', "200 OK", "degraded: m"),
        ("no JSON", "200 OK", ""),
        pytest.param("[" * 60_000, "200 OK", "", id="depth"),
    ],
)
async def test_its_page_of_health_is_asked(member: Callable[..., Member], body: str, status: str, reason: str) -> None:
    assert await asked(member("scout"), body, status) == (reason, ["GET /healthz HTTP/1.1"])


async def test_who_cannot_be_asked_says_nothing(member: Callable[..., Member], port: int) -> None:
    assert await condition(replace(member("scout"), health_url=f"http://127.0.0.1:{port}/readyz")) == ""
    assert await asked(member("model", kind="service"), '{"status": "error", "message": "x"}') == ("", [])
