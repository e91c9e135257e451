"""The system's resolver behind a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from pallas_registry.discovery.resolver import NotFound, Resolver, Unresolved


def entries(*addresses: str) -> list:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]


async def test_all_addresses_once() -> None:
    resolve = Resolver(getaddrinfo=lambda *_, **__: entries("10.0.0.2", "10.0.0.3", "10.0.0.2"))
    assert await resolve("harper") == {"10.0.0.2", "10.0.0.3"}


async def test_the_real_one_knows_localhost() -> None:
    assert await Resolver()("localhost") & {"127.0.0.1", "::1"}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), NotFound),
        (socket.gaierror(socket.EAI_NODATA, "No address"), NotFound),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), Unresolved),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), Unresolved),
        (OSError(24, "Too many open files"), Unresolved),
        (UnicodeError("label empty or too long"), NotFound),
    ],
)
async def test_no_such_name_and_no_answer_are_two_things(error: Exception, raised: type[Exception]) -> None:
    def fail(*_args, **_options):
        raise error

    with pytest.raises(raised):
        await Resolver(getaddrinfo=fail)("harper")


async def test_a_hanging_look_up_is_joined_not_repeated() -> None:
    calls, release = [], threading.Event()

    def slow(host: str, *_args, **_options):
        calls.append(host)
        release.wait()
        return entries("10.0.0.2")

    resolve = Resolver(getaddrinfo=slow)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await resolve("harper")
    second = asyncio.create_task(resolve("harper"))
    await asyncio.sleep(0)
    release.set()
    assert await second == {"10.0.0.2"}
    assert calls == ["harper"]
    assert await resolve("harper") == {"10.0.0.2"}
    assert calls == ["harper", "harper"]


async def test_never_more_look_ups_than_the_limit() -> None:
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2)

    def count(*_args, **_options):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()  # passes only when two run at once
        with lock:
            running -= 1
        return entries("10.0.0.2")

    resolve = Resolver(getaddrinfo=count, limit=2)
    await asyncio.gather(*(resolve(f"agent-{number}") for number in range(8)))
    assert most == 2


async def test_its_threads_do_not_hold_the_process() -> None:
    daemon = asyncio.get_running_loop().create_future()

    def look(*_args, **_options):
        daemon.get_loop().call_soon_threadsafe(daemon.set_result, threading.current_thread().daemon)
        return entries("10.0.0.2")

    await Resolver(getaddrinfo=look)("harper")
    assert await daemon is True
