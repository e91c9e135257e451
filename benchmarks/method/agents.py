"""The same agent as we serve it and as fast-agent does, and a bare FastMCP server with the tool of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.method import servers
from pallas_contract.probe.session import CLIENT, META, MODERN

NAME = "hello"
HI = {"message": "hi"}
SAID_HI = '"text":"hi"'
"""What the answer to it holds: the model repeats what it is told."""

PLAIN = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

_CARD = f"""---
type: agent
name: {NAME}
---
You repeat.
"""
_CONFIG = "default_model: passthrough\nsession_history: false\n"
_ECHO = """
import sys
from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool
def get_health() -> dict[str, str]:
    return {"status": "ok", "timestamp": "2026-01-01T00:00:00Z"}


server.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, uvicorn_config={"access_log": False})
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that takes connections. `base` is its URL without a path."""

    base: str
    pid: int

    @property
    def mcp(self) -> str:
        return f"{self.base}/mcp"


def ask(url: str, method: str, params: dict[str, Any], name: str = "") -> bytes:
    """The answer to one call of the stateless era.

    Raises:
        OSError: there is none.
    """
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, f"{META}clientInfo": CLIENT}
    headers = {**PLAIN, "mcp-protocol-version": MODERN, "mcp-method": method} | ({"mcp-name": name} if name else {})
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    with urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(message).encode(), headers), timeout=30
    ) as reply:
        return bytes(reply.read())


def project(folder: Path, scope: str) -> Path:
    """The files of an agent of that instance scope, in a folder of its own; the port is told by `PALLAS_BIND`."""
    place = folder / scope
    place.mkdir(exist_ok=True)
    (place / "hello.md").write_text(_CARD)
    (place / "fastagent.config.yaml").write_text(_CONFIG)
    fleet = f"name: bench\nagents:\n  {NAME}: {{card: hello.md, port: 1, instance_scope: {scope}}}\n"
    (place / "agents.yaml").write_text(fleet)
    return place


def our_command(port: int) -> tuple[list[str], dict[str, str]]:
    """Command and environment."""
    return [sys.executable, "-m", "pallas_agent_runtime", "--agent", NAME], environment(PALLAS_BIND=f"127.0.0.1:{port}")


def stock_command(port: int, scope: str) -> tuple[list[str], dict[str, str]]:
    return [str(Path(sys.executable).with_name("fast-agent")), *stock_arguments(port, scope)], environment()


def stock_arguments(port: int, scope: str, host: str = "127.0.0.1") -> list[str]:
    serve = ["serve", "--card", "hello.md", "--transport", "http", "--host", host, "--port", str(port)]
    return [*serve, "--instance-scope", scope]


def environment(**more: str) -> dict[str, str]:
    """That of this process without what would change an agent; bytecode is kept, as in an image."""
    hidden = ("PALLAS_", "OPENAI_", "ANTHROPIC_", "FAST_AGENT_", "PYTHONDONTWRITEBYTECODE")
    return {key: value for key, value in os.environ.items() if not key.startswith(hidden)} | more


@contextmanager
def ours(folder: Path, scope: str) -> Iterator[Server]:
    with serving(project(folder, scope)) as server:
        yield server


@contextmanager
def serving(place: Path) -> Iterator[Server]:
    """The agent of the project in `place`, as we serve it."""
    port = servers.free_port()
    command, env = our_command(port)
    with servers.listening(command, place, port, env) as running:
        yield _server(port, running)


@contextmanager
def stock(folder: Path, scope: str) -> Iterator[Server]:
    port = servers.free_port()
    command, env = stock_command(port, scope)
    with servers.listening(command, project(folder, scope), port, env) as running:
        yield _server(port, running)


@contextmanager
def echo(folder: Path) -> Iterator[Server]:
    port = servers.free_port()
    (folder / "echo.py").write_text(_ECHO)
    with servers.listening([sys.executable, "echo.py", str(port)], folder, port, environment()) as running:
        yield _server(port, running)


def _server(port: int, running: subprocess.Popen[bytes]) -> Server:
    return Server(f"http://127.0.0.1:{port}", running.pid)
