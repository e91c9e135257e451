"""Peers with many pins of their own: each has an environment beside ours, made once."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.method import agents, servers
from benchmarks.method.load import Missing, need

_SECRETS = (
    "PLATFORM_ADMIN_PASSWORD",
    "JWT_SECRET_KEY",
    "AUTH_ENCRYPTION_SECRET",
    "BASIC_AUTH_PASSWORD",
    "DEFAULT_USER_PASSWORD",
)
"""What ContextForge does not start without."""
CONTEXTFORGE = "mcp-contextforge-gateway==1.1.0"
_CACHE = Path(os.environ.get("PALLAS_BENCH_DIR", Path.home() / ".cache" / "pallas-bench"))


def environment(requirement: str) -> Path:
    """The folder of the commands of a package in an environment of its own.

    Raises:
        Missing: it cannot be installed here.
    """
    need("uv")
    place = _CACHE / requirement.replace("==", "-")
    if not (place / ".ready").exists():
        made = subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, place], check=False)
        command = ["uv", "pip", "install", "--quiet", "--python", place / "bin" / "python", requirement]
        if made.returncode or subprocess.run(command, check=False).returncode:
            raise Missing(f"{requirement}: cannot be installed")
        (place / ".ready").touch()
    return place / "bin"


@contextmanager
def contextforge(folder: Path, echo: agents.Server) -> Iterator[tuple[agents.Server, str]]:
    """ContextForge before `echo`, without tokens, limits and plugins; and its name for the tool of that.

    Raises:
        Missing: it is not to be had.
    """
    command = environment(CONTEXTFORGE) / "uvicorn"
    port = servers.free_port()
    place = folder / "contextforge"
    place.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "DATABASE_URL": f"sqlite:///{place}/mcp.db",
        "AUTH_REQUIRED": "false",
        "ALLOW_UNAUTHENTICATED_ADMIN": "true",
        "RATE_LIMITING_ENABLED": "false",
        "PLUGINS_ENABLED": "false",
        "MCPGATEWAY_UI_ENABLED": "false",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "LOG_LEVEL": "ERROR",
        **{name: f"A1-{secrets.token_urlsafe(32)}" for name in _SECRETS},
    }
    words = [str(command), "mcpgateway.main:app", "--host", "127.0.0.1", "--port", str(port), "--no-access-log"]
    with servers.listening(words, place, port, env) as running:
        base = f"http://127.0.0.1:{port}"
        _post(
            f"{base}/gateways", {"name": "echo", "url": echo.mcp, "transport": "STREAMABLEHTTP", "visibility": "public"}
        )
        yield agents.Server(base, running.pid), "echo-get-health"


def _post(url: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    urllib.request.urlopen(request, timeout=60).close()
