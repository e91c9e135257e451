"""Calls of a tool through the gateway against other gateways before the same server, and against the direct call.

The gateway has all that it checks and writes switched on: a token, a grant, a tenant's limits, the audit. The others
check nothing: a FastMCP proxy, and ContextForge on SQLite without limits and plugins. CPU is that of the gateway alone,
or of the other one, without the server behind. All have the same load, and keep their connections.

A second hop takes its time whatever is done on it: that of uvicorn and aiohttp which only pass on is told beside ours.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.method import agents, peers, servers
from benchmarks.method.mcp_load import call, latency
from benchmarks.method.report import Figure, at_least, at_most, ratio
from benchmarks.method.side_by_side import Effort, Sample, compare, spread

HEALTH: tuple[str, dict[str, str], str] = ("get_health", {}, '"status":"ok"')
TOKEN = "bench-0123456789abcdef"
MIB = 1024**2
_FLEET = """\
name: bench
access: {{tokens: {{load: {{file: load.txt}}, gateway: {{file: gateway.txt}}}}}}
gateway:
  agents: [echo]
  tenants: {{bench: {{callers: [load], requests: 999999/minute, concurrent: 1000}}}}
  grants: [{{caller: load, agent: echo, tools: [get_health]}}]
  audit: {{key: {{file: audit.txt}}}}
agents: {{echo: {{card: hello.md, port: {port}}}}}
"""
_PROXY = """
import sys
from fastmcp.server import create_proxy

options = {"access_log": False}
create_proxy(sys.argv[2]).run(
    "http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, uvicorn_config=options
)
"""
_BARE = """
import sys
import aiohttp
import uvicorn

client = None


async def app(scope, receive, send):
    global client
    if client is None:
        client = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
    passed = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in (b"host",)]
    body = (await receive())["body"]
    async with client.post(sys.argv[2], data=body, headers=passed) as response:
        data = await response.read()
    kept = (b"content-type", b"content-length")
    head = [(name.lower(), value) for name, value in response.raw_headers if name.lower() in kept]
    await send({"type": "http.response.start", "status": response.status, "headers": head})
    await send({"type": "http.response.body", "body": data})


options = {"loop": "uvloop", "http": "httptools", "log_level": "warning"}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, lifespan="off", **options)
"""


def measure(effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with agents.echo(folder) as echo, gateway(folder, echo) as ours, proxy(folder, echo) as theirs:
            door = f"{ours.base}/agents/echo/mcp"
            through = partial(call, door, *HEALTH, effort.seconds, ours.pid, TOKEN)
            other = partial(call, theirs.mcp, *HEALTH, effort.seconds, theirs.pid)
            found = compare(lambda: by_cpu(through()), lambda: by_cpu(other()), effort)
            yield ratio("tools/call per CPU-second: gateway / FastMCP proxy", found, at_least(20), "/s")
            with peers.contextforge(folder, echo) as (third, tool):
                large = partial(call, third.mcp, tool, *HEALTH[1:], effort.seconds, third.pid)
                found = compare(lambda: by_cpu(through()), lambda: by_cpu(large()), effort)
            yield ratio("tools/call per CPU-second: gateway / ContextForge", found, at_least(20), "/s")
            cost = spread(1000 / by_cpu(through()).value for _ in range(effort.rounds))
            yield Figure("CPU of the gateway per tools/call", cost, at_most(1.5), "ms")
            direct = partial(latency, echo.mcp, *HEALTH, effort.seconds)
            behind = partial(latency, door, *HEALTH, effort.seconds, TOKEN)
            slower = compare(behind, direct, effort)
            yield ratio("median latency of tools/call: through the gateway / direct", slower, at_most(2), "s")
            with proxy(folder, echo, _BARE) as nothing:
                least = compare(partial(latency, nothing.mcp, *HEALTH, effort.seconds), direct, effort)
            yield ratio("median latency of tools/call: through a proxy that only passes on / direct", least, unit="s")
            held = spread([servers.resident(ours.pid) / MIB])
            yield Figure("memory of the gateway after these calls (RSS)", held, at_most(80), "MiB")


def by_cpu(sample: Sample) -> Sample:
    """The calls per CPU-second as the figure: what stands behind takes its share of the same core."""
    return Sample(sample.cpu or 0.0)


@contextmanager
def gateway(folder: Path, echo: agents.Server) -> Iterator[agents.Server]:
    """The gateway before `echo`, which asks for no token and gets the gateway's all the same."""
    place = folder / "gateway"
    place.mkdir()
    files = {
        "agents.yaml": _FLEET.format(port=echo.base.rpartition(":")[2]),
        "load.txt": TOKEN,
        "gateway.txt": "gateway-0123456789",
        "audit.txt": "audit-0123456789abcdef",
    }
    for name, text in files.items():
        (place / name).write_text(text)
    port = servers.free_port()
    env = agents.environment(PALLAS_BIND=f"127.0.0.1:{port}")
    command = [sys.executable, "-m", "pallas_gateway"]
    with servers.listening(command, place, port, env) as running:
        yield agents.Server(f"http://127.0.0.1:{port}", running.pid)


@contextmanager
def proxy(folder: Path, echo: agents.Server, program: str = _PROXY) -> Iterator[agents.Server]:
    """FastMCP's own proxy before `echo`, or another `program`."""
    (folder / "proxy.py").write_text(program)
    port = servers.free_port()
    command = [sys.executable, "proxy.py", str(port), echo.mcp]
    with servers.listening(command, folder, port, agents.environment()) as running:
        yield agents.Server(f"http://127.0.0.1:{port}", running.pid)
