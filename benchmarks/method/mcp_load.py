"""MCP calls on their own core: one-shot ones without a session, or conversations of ten turns in one.

    python -m benchmarks.method.mcp_load URL call|conversation TOOL ARGUMENTS EXPECTED CONNECTIONS SECONDS TOKEN

prints `{"calls": .., "seconds": .., "busy": .., "median": ..}`; `busy` is the share of its core that the load itself
took, `median` the seconds of one call or conversation.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import aiohttp
import uvloop

from benchmarks.method.agents import PLAIN
from benchmarks.method.servers import cpu_seconds
from benchmarks.method.side_by_side import LOAD, Sample
from pallas_contract.probe.session import CLIENT, LEGACY, META, MODERN

TURNS = 10
CONNECTIONS = 8
TOO_BUSY = 0.85
"""Share of its core above which the load, and not the server, may be what is measured."""


def call(
    url: str, tool: str, arguments: dict[str, Any], expected: str, seconds: float, server: int, token: str = ""
) -> Sample:
    """One-shot calls per second, and per CPU-second of process `server`; every answer must hold `expected`."""
    return _measure(url, "call", tool, arguments, expected, seconds, server, token)


def call_by_cpu(url: str, tool: str, arguments: dict[str, Any], expected: str, seconds: float, server: int) -> Sample:
    """One-shot calls per CPU-second of process `server`, which may answer faster than one core can ask."""
    before = cpu_seconds(server)
    said = _run_apart(url, "call", tool, arguments, expected, CONNECTIONS, seconds, "")
    return Sample(said["calls"] / (cpu_seconds(server) - before))


def latency(url: str, tool: str, arguments: dict[str, Any], expected: str, seconds: float, token: str = "") -> Sample:
    """Median seconds of one-shot calls that are made one after the other."""
    return Sample(_run_apart(url, "call", tool, arguments, expected, 1, seconds, token)["median"])


def converse(url: str, tool: str, arguments: dict[str, Any], expected: str, seconds: float, server: int) -> Sample:
    """Turns per second: session opened, ten turns, session closed, again and again."""
    return _measure(url, "conversation", tool, arguments, expected, seconds, server)


def _measure(
    url: str,
    kind: str,
    tool: str,
    arguments: dict[str, Any],
    expected: str,
    seconds: float,
    server: int,
    token: str = "",
) -> Sample:
    before = cpu_seconds(server)
    said = _run_apart(url, kind, tool, arguments, expected, CONNECTIONS, seconds, token)
    spent = cpu_seconds(server) - before
    if said["busy"] > TOO_BUSY:
        raise RuntimeError(f"the load took {said['busy']:.0%} of its core: it may be the bottleneck")
    return Sample(said["calls"] / said["seconds"], said["calls"] / spent)


def _run_apart(
    url: str,
    kind: str,
    tool: str,
    arguments: dict[str, Any],
    expected: str,
    connections: int,
    seconds: float,
    token: str,
) -> dict[str, float]:
    what = [url, kind, tool, json.dumps(arguments), expected, str(connections), str(seconds), token]
    command = ["taskset", "-c", str(LOAD), sys.executable, "-m", __name__, *what]
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))


class _Client:
    """`count` grows by one with every answered call of a tool."""

    def __init__(self, http: aiohttp.ClientSession, url: str, tool: str, arguments: str, expected: str) -> None:
        self._http, self._url, self._tool = http, url, tool
        self._params = {"name": tool, "arguments": json.loads(arguments)}
        self._expected = expected.encode()
        self.count = 0

    async def call(self) -> None:
        meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, f"{META}clientInfo": CLIENT}
        headers = {**PLAIN, "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": self._tool}
        await self._answered({**self._params, "_meta": meta}, headers)

    async def conversation(self) -> None:
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
        reply, _ = await self._post({"id": 0, "method": "initialize", "params": hello}, PLAIN)
        session = {**PLAIN, "mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": LEGACY}
        await self._post({"method": "notifications/initialized"}, session)
        for _ in range(TURNS):
            await self._answered(self._params, session)
        async with self._http.delete(self._url, headers=session) as reply:
            await reply.read()

    async def _answered(self, params: dict[str, Any], headers: dict[str, str]) -> None:
        _, body = await self._post({"id": 1, "method": "tools/call", "params": params}, headers)
        if self._expected not in body:
            raise RuntimeError(f"{self._url} answered {body[:300]!r}")
        self.count += 1

    async def _post(self, message: dict[str, Any], headers: dict[str, str]) -> tuple[aiohttp.ClientResponse, bytes]:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        async with self._http.post(self._url, data=data, headers=headers) as reply:
            return reply, await reply.read()


async def _run(
    url: str, kind: str, tool: str, arguments: str, expected: str, connections: int, seconds: float, token: str
) -> dict[str, float]:
    durations: list[float] = []
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections), headers=headers) as http:
        client = _Client(http, url, tool, arguments, expected)
        one = client.call if kind == "call" else client.conversation
        started, busy = time.perf_counter(), time.process_time()

        async def again_and_again() -> None:
            while time.perf_counter() - started < seconds:
                begun = time.perf_counter()
                await one()
                durations.append(time.perf_counter() - begun)

        await asyncio.gather(*(again_and_again() for _ in range(connections)))
        took = time.perf_counter() - started
        load = (time.process_time() - busy) / took
    return {"calls": client.count, "seconds": took, "busy": load, "median": statistics.median(durations)}


if __name__ == "__main__":
    url, kind, tool, arguments, expected, connections, seconds, token = sys.argv[1:]
    print(json.dumps(uvloop.run(_run(url, kind, tool, arguments, expected, int(connections), float(seconds), token))))
