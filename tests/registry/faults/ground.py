"""A real registry over agents that misbehave, and an independent recorder of what it publishes, and when."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.ports import free_port
from tests.registry.faults.misbehaving import Agent
from tests.registry.processes import DEADLINE, registry, until

CATALOGUE = "/.well-known/mcp/server.json"
PROBES = "pallas_registry_probe_duration_seconds_count"
INTERVAL = 5.0
"""The registry's default, which the bounds are made for."""
REFUSED, HUNG = 6.0, 11.0
"""Seconds from a fault to a published state: who refuses is known at once, who is silent has to be waited for."""
BACK = INTERVAL + 3.0 + 1.0
"""Seconds from the end of a fault to `ok`: an interval, after a probe that may just have begun to wait in vain."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of state as a client of `/events` saw it; `at` in monotonic seconds of the test."""

    at: float
    agent: str
    old: str
    new: str
    reason: str


@dataclass
class Ground:
    """A running registry, and everything it has said so far."""

    client: httpx.AsyncClient
    process: asyncio.subprocess.Process
    changes: list[Change] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    async def states(self) -> dict[str, tuple[str, str]]:
        """Agent -> state and reason, from the seed's catalogue."""
        servers = (await self.client.get(CATALOGUE)).json()["servers"]
        health = {each["server"]["name"].split("/")[1]: each["_meta"]["io.pallas-kit/health"] for each in servers}
        return {slug: (said["status"], said.get("message", "")) for slug, said in health.items()}

    async def until(self, state: str, agents: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Wait until all of `agents` are in that state."""
        wanted, seen = set(agents), {}

        def there(states: dict[str, tuple[str, str]]) -> bool:
            seen.update(states)
            return all(states.get(agent, ("",))[0] == state for agent in wanted)

        try:
            return await until(self.states, there)
        except TimeoutError:
            odd = {agent: seen.get(agent) for agent in sorted(wanted) if seen.get(agent, ("",))[0] != state}
            raise AssertionError(f"not {state}: {odd}") from None

    async def said(self, agent: str, condition: tuple[str, str]) -> None:
        """Wait until this state and reason are published of an agent."""
        await until(self.states, lambda seen: seen.get(agent) == condition)

    def after(self, moment: float, agent: str) -> list[Change]:
        """What was published about an agent from that moment on."""
        return [change for change in self.changes if change.agent == agent and change.at >= moment]

    async def gauge(self, name: str) -> float:
        """A metric, its labels included in the name."""
        text = (await self.client.get("/metrics")).text
        return float(text.partition(f"\n{name} ")[2].split("\n")[0])

    async def probes(self, count: int) -> None:
        """Wait for that many more probes."""
        wanted = await self.gauge(PROBES) + count
        async with asyncio.timeout(60):
            while await self.gauge(PROBES) < wanted:
                await asyncio.sleep(0.1)

    def memory(self, what: str) -> int:
        """VmRSS or VmHWM of the registry in bytes (proc(5))."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))

    def cpu(self) -> float:
        """Seconds of processor time the registry has used (proc(5))."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def files(self) -> int:
        """How many file descriptors it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    async def follow_log(self) -> None:
        assert self.process.stdout
        while line := await self.process.stdout.readline():
            self.log.append(line.decode())

    async def record(self) -> None:
        async with self.client.stream("GET", "/events", timeout=None) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: {") and (said := json.loads(line[6:])).get("agent"):
                    slug = said["agent"].replace("_", "-")
                    self.changes.append(Change(time.monotonic(), slug, said["old"], said["new"], said["reason"]))


async def asked(agent: Agent) -> None:
    """Wait until the agent has been asked something."""
    await until(lambda: asyncio.sleep(0, agent.asked), bool)


def fleet(folder: Path, agents: Sequence[str], *, interval: float | None = None) -> int:
    """Write an agents.yaml with these agents; the port of its registry."""
    port = free_port()
    lines = [f"  {agent}: {{module: agents.any, port: {20001 + number}}}" for number, agent in enumerate(agents)]
    more = f"registry: {{probe_interval: {interval}}}\n" if interval else ""
    written = f"name: faults\nnamespace: com.example\nregistry_port: {port}\n{more}agents:\n" + "\n".join(lines) + "\n"
    (folder / "agents.yaml").write_text(written)
    return port


@asynccontextmanager
async def watched(folder: Path, port: int, *, before: Sequence[str] = (), **env: str) -> AsyncIterator[Ground]:
    """A registry over the fleet in `folder`, ready, with the recorder running."""
    async with (
        registry(folder, before=before, PALLAS_BIND=f"127.0.0.1:{port}", **env) as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE) as client,
    ):
        await until(lambda: client.get("/readyz"), lambda reply: reply.status_code == 200)
        ground = Ground(client, process)
        recorder = asyncio.create_task(ground.record())
        logged = asyncio.create_task(ground.follow_log())
        try:
            yield ground
        finally:
            for task in (recorder, logged):
                task.cancel()
                with suppress(asyncio.CancelledError, httpx.HTTPError):
                    await task


class Program:
    """A healthy agent in a process of its own, to be frozen, killed or late; it ends with the tests."""

    def __init__(self, name: str) -> None:
        self.name, self.port = name, free_port()
        self.process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        command = (sys.executable, str(Path(__file__).with_name("misbehaving.py")), self.name, str(self.port))
        self.process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
        async with asyncio.timeout(DEADLINE):
            while True:
                with suppress(ConnectionError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                await asyncio.sleep(0.1)

    def signal(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    def late(self, seconds: float) -> None:
        """Answer the first request of each probe that late from now on."""
        assert self.process
        assert self.process.stdin
        self.process.stdin.write(f"{seconds}\n".encode())

    async def stop(self) -> None:
        assert self.process
        self.process.kill()
        await self.process.wait()


def addresses(where: dict[str, str]) -> str:
    """The value of PALLAS_ADDRESSES."""
    return json.dumps(where)
