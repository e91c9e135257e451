"""How an agent process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from pallas_agent_runtime.local import restarts
from pallas_gen import plan
from pallas_service.http import shutdown
from pallas_service.http.shutdown import Stop, background, drain


class Calls:
    def __init__(self) -> None:
        self.idle, self.insisted, self.aborted = asyncio.Event(), asyncio.Event(), False

    async def abort(self) -> None:
        self.aborted = True

    async def start(self) -> asyncio.Task[None]:
        task = asyncio.create_task(drain(self.idle, self.insisted, self.abort))
        for _ in range(5):
            await asyncio.sleep(0)
        return task


@pytest.mark.parametrize("event", ["idle", "insisted"])
async def test_it_waits_for_open_calls_until_told_again(event: str) -> None:
    calls = Calls()
    draining_task = await calls.start()
    assert not calls.aborted
    getattr(calls, event).set()
    await draining_task
    assert calls.aborted


async def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutdown, "GRACE", 0.0)
    calls = Calls()
    await (await calls.start())
    assert calls.aborted


async def test_the_second_signal_insists() -> None:
    stop = Stop()
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.asked.wait()
    assert not stop.insisted.is_set()
    os.kill(os.getpid(), signal.SIGINT)
    await stop.insisted.wait()


async def test_background_work_ends_with_the_body() -> None:
    ended = asyncio.Event()

    async def job() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with background(job()):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_background_work_that_fails_is_not_overlooked() -> None:
    async def job() -> None:
        raise ValueError("a bug")

    async def serve() -> None:
        async with background(job()):
            await asyncio.Event().wait()

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="a bug")):
        await serve()


HEADS = {
    "one header that does not end": (b"GET / HTTP/1.1\r\nX: ", b"a" * 65_536),
    "many headers": (b"GET / HTTP/1.1\r\n", b"X-Name: value\r\n" * 4_096),
    "a URL": (b"GET /", b"a" * 65_536),
    "trailers": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Name: value\r\n" * 4_096),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
async def test_a_head_without_end_is_refused(head: tuple[bytes, bytes]) -> None:
    async def app(scope, receive, send) -> None:
        while (await receive()).get("more_body"):
            pass

    server, sent, loop = shutdown.HttpServer(app), 0, asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as caller:
        serving = asyncio.create_task(server.serve([listener]))
        caller.setblocking(False)
        await loop.sock_connect(caller, listener.getsockname())
        await loop.sock_sendall(caller, head[0])
        with suppress(ConnectionError):
            while sent < 32 << 20:
                await loop.sock_sendall(caller, head[1])
                sent += len(head[1])
        assert sent < 32 << 20  # a few MiB in the buffers of the sockets
        assert (await loop.sock_recv(caller, 100)).startswith(b"HTTP/1.1 431 ")
        server.end()
        await serving


async def test_space_around_a_header_is_not_part_of_it() -> None:
    async def app(scope, receive, send) -> None:
        await PlainTextResponse(Request(scope).headers["mcp-name"])(scope, receive, send)

    server = shutdown.HttpServer(app)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nMcp-Name: \t get_health \t\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\nget_health")
        writer.close()
        server.end()
        await serving


CLIENTS = {"httpx": 5, "Node": 5, "aiohttp": 15, "nginx": 60, "AWS": 60, "Go": 90, "reqwest": 90}
"""Seconds for which clients, and proxies before us, keep an idle connection where nobody tells them otherwise."""


async def answer(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse("ok")(scope, receive, send)


def test_no_common_client_keeps_a_connection_longer_than_we_do() -> None:
    """Else it sends a request at the moment in which we close."""
    assert shutdown.HttpServer(answer).config.timeout_keep_alive > max(CLIENTS.values())


async def test_the_end_waits_for_no_idle_connection() -> None:
    server = shutdown.HttpServer(answer, linger=1000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")
        server.end()
        await asyncio.wait_for(serving, 20)
        assert await reader.read() == b""
        writer.close()


async def test_an_idle_server_wakes_up_for_the_date_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, delays = asyncio.get_running_loop(), []
    call_at = loop.call_at

    def note(when: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        delays.append(when - loop.time())
        return call_at(when, *arguments, **options)

    monkeypatch.setattr(shutdown, "TICK", 1000.0)
    monkeypatch.setattr(loop, "call_at", note)
    server = shutdown.HttpServer(answer)
    waiting = asyncio.create_task(server.main_loop())
    for _ in range(5):
        await asyncio.sleep(0)
    assert min(delays) > 900
    assert b"date" in dict(server.server_state.default_headers)
    server.end()
    await asyncio.wait_for(waiting, 20)


async def test_the_date_is_never_older_than_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0.0, 1.0, 2.0))
    monkeypatch.setattr(shutdown, "TICK", 0.0)
    monkeypatch.setattr("uvicorn.server.time", SimpleNamespace(time=lambda: next(times, 3.0)))
    server = shutdown.HttpServer(answer)
    waiting = asyncio.create_task(server.main_loop())
    async with asyncio.timeout(20):
        while dict(server.server_state.default_headers).get(b"date") != b"Thu, 01 Jan 1970 00:00:03 GMT":
            await asyncio.sleep(0)
    server.end()
    await asyncio.wait_for(waiting, 20)


TOLD = """
import asyncio, os, signal, threading, time
from pathlib import Path
from pallas_service.http.shutdown import Stop, leave_in_time

async def deaf():
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass

async def serve():
    task = asyncio.create_task(deaf())
    stop = Stop()
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.asked.wait()
    leave_in_time(0.1, Path("home").rmdir)

Path("home").mkdir()
threading.Thread(target=time.sleep, args=[1000], name="look-up").start()
asyncio.run(serve())
"""


def test_a_process_that_was_told_to_stop_leaves_behind_what_does_not_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TOLD]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "left_behind" in ended.stdout
    assert "deaf" in ended.stdout
    assert "look-up" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_end_is_over_before_anybody_kills() -> None:
    assert shutdown.GRACE + shutdown.END < plan.GRACE_SECONDS
    assert shutdown.REST < shutdown.END < restarts.Timing().grace
