"""A world of the tests' own: time that moves when told, agents that answer as told."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

import pytest

from tests.registry.fake_fleet import Fake
from tests.registry.registration_client import Open, admit, opened

START = datetime(2026, 3, 12, 10, 0, tzinfo=UTC)

FLEET = """
name: demo
namespace: com.example.project
host: my-host.example.com
registry_port: 8200
agents:
  harper: {module: agents.harper, port: 8201, title: Harper, description: "My assistant", depends_on: [tech_research]}
  tech_research: {module: agents.research, port: 8250}
"""


@dataclass
class Time:
    """Monotonic seconds and a wall clock that only `advance` moves; `sleep` returns when they get there."""

    seconds: float = 0.0
    jumped: float = 0.0
    """Seconds by which the wall clock has been put forward."""
    _sleepers: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    """A heap; of those who wake up at the same time the first is who lay down first."""
    _numbers: Iterator[int] = field(default_factory=count)

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds + self.jumped)

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self.seconds + max(0.0, seconds), next(self._numbers), future))
        await future

    async def advance(self, seconds: float = 0.0) -> None:
        """Move on, stopping at each wake-up on the way, and let everything run that can."""
        until = self.seconds + seconds
        while True:
            await _settle()
            while self._sleepers and self._sleepers[0][2].done():
                heappop(self._sleepers)
            if not self._sleepers or self._sleepers[0][0] > until:
                break
            due, _, future = heappop(self._sleepers)
            self.seconds = max(self.seconds, due)
            future.set_result(None)
        self.seconds = until


async def _settle() -> None:
    """Let every task run until all of them wait for something; none of the tests' chains is longer.

    Where the loop has nothing else to run, twice in succession since sockets may have something by then, they do.
    """
    ready = vars(asyncio.get_running_loop())["_ready"]
    idle = 0
    for _ in range(50):
        await asyncio.sleep(0)
        idle = 0 if ready else idle + 1
        if idle == 2:
            break


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project folder with two agents and a model."""
    (tmp_path / "agents.yaml").write_text(FLEET)
    (tmp_path / "fastagent.config.yaml").write_text(
        "default_model: openai.my-model-name\n"
        "model_capabilities: {vision: false, context_window: 200000, max_output_tokens: 32000}\n"
    )
    for file in tmp_path.iterdir():
        os.utime(file, (START.timestamp(), START.timestamp()))
    return tmp_path


@dataclass
class Agent:
    """An MCP agent of the current era on loopback that says what `health` holds."""

    name: str
    health: dict[str, str] = field(default_factory=lambda: {"status": "ok"})
    port: int = 0
    server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self.server
        self.server.close()
        self.server.close_clients()
        await self.server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].split("\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            about = {"name": self.name, "version": "1.0.0"}
            result = {
                "server/discover": {
                    "supportedVersions": ["2026-07-28"],
                    "_meta": {"io.modelcontextprotocol/serverInfo": about},
                },
                "tools/list": {"tools": [{"name": self.name}, {"name": "get_health"}]},
                "tools/call": {"content": [{"type": "text", "text": json.dumps(self.health)}]},
            }[asked["method"]]
            body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
            fields = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            writer.write(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def agent() -> AsyncIterator[Callable[[str], Awaitable[Agent]]]:
    """`await agent("harper")`: a running agent."""
    async with AsyncExitStack() as stack:

        async def start(name: str) -> Agent:
            made = Agent(name)
            await made.start()
            stack.push_async_callback(made.stop)
            return made

        yield start


@pytest.fixture
def fake() -> Fake:
    fake = Fake()
    fake.put("harper", "10.0.0.1")
    fake.put("tech_research", "10.0.0.2")
    return fake


@pytest.fixture
def no_threads(monkeypatch) -> None:
    """Reading the file in a thread would take real time, and time is the tests' own."""

    async def at_once(work):
        return work()

    monkeypatch.setattr(asyncio, "to_thread", at_once)


@pytest.fixture
async def desk(folder: Path, time) -> AsyncIterator[Open]:
    admit(folder)
    async with opened(folder, time) as found:
        yield found
