"""Where the gateway goes for an agent that registered itself: where the registry says, and `reach` allows."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.data_plane import upstream
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers import registered
from pallas_gateway.own.peers.registered import FRESH, Directory, Registered
from pallas_service.http.reach import Reach
from tests.gateway.own.peers.registry import Registry

FLEET = resolve(Fleet.model_validate({"name": "x", "agents": {"a": {"card": "a.md", "port": 8101}}}))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Names(AbstractResolver):
    """A DNS of the tests' own."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in self.addresses
        ]

    async def close(self) -> None: ...


@asynccontextmanager
async def looking(registry: Registry, *reach: str, clock: Clock | None = None) -> AsyncIterator[Registered]:
    async with registry.served() as url, upstream.session() as client:
        directory = Directory(url, {"cleaner-one": registry.name("cleaner_one")})
        yield Registered(directory, Reach(reach), client, clock or Clock())


@pytest.fixture
async def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(registered, "SECONDS", 60.0)  # for an answer of the registry, which is in this process
    return Registry(FLEET)


async def why(agents: Registered) -> str:
    with pytest.raises(Failed) as failed:
        await agents.find("cleaner-one")
    assert failed.value.reason == "unreachable"
    return failed.value.error.message


async def test_it_is_where_the_registry_has_it_and_that_is_believed_for_a_moment(registry: Registry) -> None:
    clock = Clock()
    registry.urls["cleaner_one"] = "http://10.1.2.3:8080/mcp#part"
    async with looking(registry, "10.0.0.0/8", clock=clock) as agents:
        assert "cleaner-one" in agents
        assert "other" not in agents
        for _ in range(3):
            found = await agents.find("cleaner-one")
            assert (found.host, found.route.url, found.route.token) == ("cleaner-one", "http://10.1.2.3:8080/mcp", "")
        assert registry.asked == 1
        clock.now += FRESH + 1
        registry.urls["cleaner_one"] = "http://10.1.2.4:8080/mcp"
        assert (await agents.find("cleaner-one")).route.url == "http://10.1.2.4:8080/mcp"
        clock.now += FRESH + 1
        registry.urls.clear()
        assert await why(agents) == "agent `cleaner-one` is not registered at present"
        registry.urls["cleaner_one"] = None
        assert await why(agents) == "agent `cleaner-one` has registered no URL"


@pytest.mark.parametrize(
    "url",
    [
        "http://10.1.2.3/mcp",
        "http://127.0.0.1/mcp",
        "http://[::1]/mcp",
        "http://[::ffff:127.0.0.1]/mcp",
        "http://169.254.169.254/mcp",
        "http://0177.0.0.1/mcp",
        "http://2130706433/mcp",
        "http://0x7f.1/mcp",
        "http://127.1/mcp",
        "http://user@10.20.0.1/mcp",
        "file:///etc/passwd",
        "http:///mcp",
        "http://[broken",
    ],
)
async def test_what_reach_does_not_name_is_not_asked(registry: Registry, url: str) -> None:
    registry.urls["cleaner_one"] = url
    async with looking(registry, "10.20.0.0/16", "agents.example.com") as agents:
        assert "`registry.registration.reach` does not allow" in await why(agents)


@pytest.mark.parametrize(
    ("addresses", "visited"), [(["127.0.0.1"], False), (["169.254.169.254"], False), (["10.20.0.1"], True)]
)
async def test_a_name_is_connected_to_where_reach_allows_and_nowhere_else(addresses: list[str], visited: bool) -> None:
    reach = Reach(["10.20.0.0/16"])
    resolver = registered.ReachResolver(reach, Names(*addresses, "127.0.0.2"))
    if visited:
        assert [found["host"] for found in await resolver.resolve("somewhere.example", 80)] == addresses
        return
    with pytest.raises(upstream.OutOfReach):
        await resolver.resolve("somewhere.example", 80)
    async with AsyncExitStack() as stack:
        visits: list[object] = []
        trap = await asyncio.start_server(lambda reader, writer: visits.append(writer), "127.0.0.1", 0)
        await stack.enter_async_context(trap)
        port = trap.sockets[0].getsockname()[1]
        client = await stack.enter_async_context(registered.client(reach, Names(*addresses)))
        with pytest.raises(upstream.Unreachable, match="at no address that may be asked"):
            async with upstream.exchange(client, "POST", f"http://x.example:{port}/mcp", headers=[], body=None):
                pass
        assert visits == []


async def test_a_registry_that_does_not_answer_is_named(registry: Registry) -> None:
    async with upstream.session() as client:
        agents = Registered(Directory("http://127.0.0.1:1", {"cleaner-one": "x/y"}), Reach([]), client)
        assert "the registry does not say" in await why(agents)
    async with looking(registry, "10.0.0.0/8") as agents:
        registry.urls["cleaner_one"] = "http://10.0.0.1/mcp"
        registry.entry = lambda agent, url: {"server": {"remotes": [{"url": url}]}}  # type: ignore[method-assign]
        assert "the registry does not say" in await why(agents)  # an agent of the file is none that registered


@asynccontextmanager
async def in_pieces(pieces: list[bytes]) -> AsyncIterator[Registered]:
    """Yield what asks a registry whose answer comes in `pieces`, as over a network."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % sum(map(len, pieces)))
        for piece in pieces:
            writer.write(piece)
            for _ in range(20):  # turns of the loop, in which the client reads what is there
                await asyncio.sleep(0)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, upstream.session() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield Registered(Directory(url, {"cleaner-one": "x/cleaner_one"}), Reach(["10.0.0.0/8"]), client)


async def test_an_answer_in_pieces_is_read_to_its_end(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(registry.entry("cleaner_one", "http://10.0.0.1/mcp")).encode()
    async with in_pieces([body[start : start + 100] for start in range(0, len(body), 100)]) as agents:
        assert (await agents.find("cleaner-one")).route.url == "http://10.0.0.1/mcp"
    monkeypatch.setattr(registered, "MOST", 150)
    async with in_pieces([body[:100], body[100:]]) as agents:
        assert await why(agents) == "the registry says more than 150 bytes of `cleaner-one`"
