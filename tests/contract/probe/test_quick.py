"""The health check of a container says what the probe says, or leaves it to the probe."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pallas_contract.probe import command, quick
from tests.contract.conftest import http
from tests.ports import free_port

pytestmark = pytest.mark.usefixtures("patient")
DISCOVERED = {"supportedVersions": ["2026-07-28"]}
JSON = {"content_type": "application/json"}


def discovered(result: Any, number: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


async def ask(url: str, timeout: float = 30) -> str | None:
    return await asyncio.to_thread(quick.ask, url, timeout=timeout)


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("/readyz", http(200)),
        ("/readyz", http(401)),
        ("/readyz", http(403)),
        ("/readyz", b"HTTP/1.1 200 OK\r\n\r\n"),
        ("/v1/models?all=1", http(200, b"{}")),
        ("/mcp", http(200, discovered(DISCOVERED), **JSON)),
        (
            "/mcp",
            http(200, b"\n " + discovered({**DISCOVERED, "more": [None, True, -1.5e3, "\u00e4"]}) + b"\r\n", **JSON),
        ),
        ("/mcp", http(401)),
    ],
)
async def test_what_is_plainly_well(serve, path: str, wire: bytes) -> None:
    async def handler(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(wire)

    server = await serve(handler)
    url = server.url.replace("/mcp", path)
    assert await ask(url) == "" == await command.check(url)
    by_quick, by_probe = server.asked
    assert by_quick.path == path
    assert by_quick == by_probe, "the same request, whoever asks"


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("/readyz", http(204)),
        ("/readyz", http(302)),
        ("/mcp", http(503)),
        ("/readyz", http(503)[:-2]),
        ("/readyz", http(200, content_encoding="gzip")),
        ("/readyz", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        ("/readyz", b"HTTP/1.0 200 OK\r\n\r\n"),
        ("/readyz", b"220 mail\r\n\r\n"),
        ("/readyz", b"HTTP/1.1 200 OK\r\n"),
        ("/readyz", b""),
        ("/mcp", http(404)),
        ("/mcp", http(200, discovered(DISCOVERED))),
        ("/mcp", http(200, discovered(DISCOVERED, number=2), **JSON)),
        ("/mcp", http(200, discovered({"supportedVersions": ["2025-11-25"]}), **JSON)),
        ("/mcp", http(200, discovered({"supportedVersions": "2026-07-28"}), **JSON)),
        ("/mcp", http(200, discovered({}), **JSON)),
        ("/mcp", http(200, discovered([]), **JSON)),
        ("/mcp", http(200, b"[]", **JSON)),
        ("/mcp", http(200, b"{", **JSON)),
        ("/mcp", http(200, b"", **JSON)),
        ("/mcp", http(200, b"well", **JSON)),
        ("/mcp", http(200, b"\xff", **JSON)),
        ("/mcp", http(200, discovered(DISCOVERED) * 2, **JSON)),
        ("/mcp", http(200, b"[" * 60_000, **JSON)),
        ("/mcp", http(200, b" " * 70_000, **JSON)),
        ("/mcp", http(200, discovered(DISCOVERED), **JSON).replace(b"content-length", b"x-length")),
        ("/mcp", http(200, discovered(DISCOVERED), **JSON)[:-1]),
        ("/mcp", "HTTP/1.1 200 OK\r\ncontent-length: ²\r\n\r\n".encode("latin-1")),
        ("/mcp", b"HTTP/1.1 200 OK\r\ncontent-length: %s\r\n\r\n" % (b"9" * 5000)),
        ("/mcp", http(200, discovered(DISCOVERED), **JSON) + b" "),
    ],
)
async def test_everything_else_is_left_to_the_probe(serve, path: str, wire: bytes) -> None:
    async def handler(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(wire)

    server = await serve(handler)
    assert await ask(server.url.replace("/mcp", path)) is None
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/mcp",
        "http://127.0.0.1:80",
        "http://127.0.0.1:0/mcp",
        "http://127.0.0.1:65536/mcp",
        "http://127.0.0.1:8080x/mcp",
        "http://127.0.0.1:8080/m cp",
        "http://127.0.0.1:8080/mcp#there",
        "http://127.0.0.1:8080/ü/mcp",
        "http://127.0.0.1:8080/\r\nhost: other/mcp",
        "http://user@127.0.0.1:8080/mcp",
        "https://127.0.0.1:8080/mcp",
        "tcp://127.0.0.1:8080",
        "http://agent:8080/mcp",
        "--help",
        "",
    ],
)
def test_only_the_own_machine_is_asked(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def connect() -> None:
        raise AssertionError(url)

    monkeypatch.setattr(quick._socket, "socket", connect)
    assert quick.ask(url) is None


async def test_a_page_that_says_not_ready(serve) -> None:
    async def handler(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(http(503))

    server = await serve(handler)
    url = server.url.replace("/mcp", "/readyz")
    assert await ask(url) == "HTTP 503" == await command.check(url)


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses += 1
        self.now += seconds


@pytest.mark.parametrize(
    ("answers", "seconds", "pauses", "result"),
    [
        (["refused"], 0.0, 0, "refused"),
        (["refused"] * 99, 5.0, 9, "refused"),
        (["refused", "no answer", ""], 5.0, 2, ""),
        (["refused", None], 5.0, 1, None),
        ([None], 5.0, 0, None),
    ],
)
def test_a_reason_is_no_reason_to_end_while_it_waits(
    monkeypatch: pytest.MonkeyPatch, answers: list[str | None], seconds: float, pauses: int, result: str | None
) -> None:
    time, remaining = Time(), iter(answers)
    monkeypatch.setattr(quick, "time", time)
    monkeypatch.setattr(quick, "_PAUSE", 0.5)
    monkeypatch.setattr(quick, "ask", lambda _: next(remaining))
    assert quick.wait("http://127.0.0.1:8080/mcp", seconds) == result
    assert time.pauses == pauses


async def test_nobody_there() -> None:
    port = free_port()
    assert await ask(f"http://127.0.0.1:{port}/mcp") == (
        f"nobody listens on {port}; the program must listen on PALLAS_BIND"
    )


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"])
async def test_one_that_takes_its_time_is_waited_for_no_longer_than_by_the_probe(serve, begun: bytes) -> None:
    async def handler(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        await writer.drain()
        await server.closed.wait()

    server = await serve(handler)
    asking = asyncio.create_task(ask(server.url, timeout=0.2))
    assert await asking == "no answer in 0.2 s"
    server.closed.set()


@pytest.mark.parametrize("goodbye", [200, 405])
async def test_a_session_that_was_opened_unasked_is_closed(serve, answer, goodbye: int) -> None:
    async def handler(asked: Any, writer: asyncio.StreamWriter) -> None:
        if asked.method == "POST":
            writer.write(http(400, mcp_session_id="s1").replace(b"length: 0", b"length: 9"))
            await writer.drain()
            await server.closed.wait()  # the body never comes
        await answer(goodbye)(asked, writer)

    server = await serve(handler)
    assert await ask(server.url) is None
    assert [asked.method for asked in server.asked] == ["POST", "DELETE"]
    assert server.asked[1].headers["mcp-session-id"] == "s1"
    assert (server.asked[1].path, server.asked[1].headers["mcp-protocol-version"]) == ("/mcp", "2025-11-25")
    server.closed.set()
