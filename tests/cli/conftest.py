"""A registry and an agent in one small application, and a folder with the fleet file that leads to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pallas_contract import names
from pallas_contract.documents import server_json
from tests.served import serving

TOKEN = "canary-of-a-token"


@dataclass
class Stand:
    """A fleet of one agent, `desk`, which repeats what it is told, and one that has ended; `calls` is what it got."""

    url: str = ""
    token: str = ""
    """The token that the agent asks for; empty where it asks for none."""
    refusal: int = 401
    """What it answers to another token: 403 where it lacks a scope."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, dict[str, str]] = field(default_factory=lambda: {"desk": {"status": "ok"}})
    published: bool = True
    registered: bool = False
    """Its agents registered themselves."""
    fleet: dict[str, str] = field(default_factory=dict)
    """What the registry says of its owner."""

    def servers(self) -> dict[str, Any]:
        entries = [
            {
                "server": {"name": f"demo/{name}", "remotes": self._remotes(name)},
                "_meta": {
                    server_json.HEALTH_META: state,
                    **({server_json.REGISTRATION_META: {}} if self.registered else {}),
                },
            }
            for name, state in self.states.items()
        ]
        return {"servers": entries}

    def _remotes(self, name: str) -> list[dict[str, str]]:
        """Return the addresses of an agent in a container, as a registry has them (decision 0028)."""
        urls = [*([f"{self.url}/mcp"] if self.published else []), f"http://{name}:8080/mcp"]
        return [{"type": "streamable-http", "url": url} for url in urls]

    def app(self) -> ASGIApp:
        server = MCPServer("desk")

        @server.tool()
        async def get_health() -> str:
            return json.dumps({"status": "ok"})

        @server.tool()
        async def desk(
            message: str, ctx: Context, images: list[dict[str, str]] | None = None, session_id: str | None = None
        ) -> str:
            self.calls.append({"message": message, "images": images, "session": session_id})
            await ctx.report_progress(1, None, "desk step 1 (llm)")
            await ctx.report_progress(2, None, "desk step 2\x1b[31m")
            if message == "fail":
                raise ToolError("the desk is closed")
            return f"heard {message}"

        @server.custom_route("/.well-known/mcp/server.json", methods=["GET"])
        async def catalogue(_: Request) -> Response:
            return JSONResponse(self.servers())

        @server.custom_route("/services", methods=["GET"])
        async def services(_: Request) -> Response:
            model = {"name": "model", "status": "not probed", "provides": "openai"}
            return JSONResponse({"fleet": self.fleet, "services": [model]})

        inner = server.streamable_http_app(stateless_http=True)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            headers = dict(scope.get("headers", ()))
            wanted = f"Bearer {self.token}".encode()
            asked = self.token and scope["type"] == "http" and scope["path"] == "/mcp"
            if asked and headers.get(b"authorization") != wanted:
                await Response(status_code=self.refusal if b"authorization" in headers else 401)(scope, receive, send)
                return
            await inner(scope, receive, send)

        return guarded


@pytest.fixture
def stand() -> Iterator[Stand]:
    """The application, served in a thread."""
    stand = Stand()
    with serving(stand.app()) as url:
        stand.url = url
        yield stand


@pytest.fixture
def project(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a fleet file whose registry is the application's; it is the working directory."""
    for name in (names.ENV_AGENTS_CONFIG, names.ENV_REGISTRY, names.ENV_TOKEN, "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    port = stand.url.rpartition(":")[2]
    text = f"name: demo\nregistry_port: {port}\nagents:\n  desk: {{module: agents.desk, port: 24201}}\n"
    (tmp_path / "agents.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path
