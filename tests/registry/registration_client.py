"""What agents outside of the file say, and a service that lets them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pallas_registry.discovery.resolver import NotFound
from pallas_registry.mcp.jsonrpc import Response
from pallas_registry.registration.store import RegistrationStore
from pallas_registry.service import Service
from tests.registry.fake_fleet import Fake, running

TOKENS = {"pricing": "pricing-token-0123456789", "partners": "partners-token-0123456789"}
REGISTRATION = """
registry:
  registration:
    tokens:
      pricing: {file: pricing.token, agents: [binance_agent]}
      partners: {file: partners.token}
    max_agents: 3
"""
REACH = REGISTRATION + "    reach: [agents.example.com, 10.20.0.0/16]\n"
CAPABILITIES = {
    "tools": ["fetch_ohlcv"],
    "resources": ["binance_api"],
    "schema": {
        "fetch_ohlcv": {
            "input": {"symbol": "string", "interval": "string"},
            "output": {"ohlcv": "list[list[float]]"},
        }
    },
    "constraints": {"timeout": 5, "memory": "128MB"},
}
"""Seed 003 section 4."""
SEED = {
    "method": "server.register",
    "params": {
        "agent_id": "feature_extractor",
        "capabilities": {
            "tools": ["extract_features"],
            "resources": ["ohlcv_source"],
            "schema": {
                "extract_features": {
                    "input": {"symbol": "string", "interval": "string"},
                    "output": {"features": "list[float]"},
                }
            },
        },
        "heartbeat_interval": 60,
    },
}
"""Seed 003 section 3.2, to the letter."""


def register(agent: str = "feature_extractor", **more: Any) -> dict[str, Any]:
    params = {"agent_id": agent, "capabilities": CAPABILITIES, "heartbeat_interval": 60, **more}
    return {"method": "server.register", "params": params}


def beat(agent: str = "feature_extractor", status: str = "active", **more: Any) -> dict[str, Any]:
    return {"method": "agent.heartbeat", "params": {"agent_id": agent, "status": status, **more}}


def leave(agent: str = "feature_extractor") -> dict[str, Any]:
    return {"method": "server.deregister", "params": {"agent_id": agent}}


def admit(folder: Path, written: str = REGISTRATION) -> None:
    """Let agents register with the fleet in `folder`."""
    for name, token in TOKENS.items():
        (folder / f"{name}.token").write_text(token + "\n")
    file = folder / "agents.yaml"
    file.write_text(file.read_text() + written)


@dataclass
class Open:
    """A running service, asked as over HTTP."""

    service: Service

    async def ask(self, message: object, token: str = "partners") -> Response:
        given = {"authorization": f"Bearer {TOKENS[token]}"} if token else {}
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.service.backend("run").mcp(given, body)

    async def code(self, message: object, token: str = "partners") -> tuple[int, int]:
        """HTTP status and error code (0 without one)."""
        reply = await self.ask(message, token)
        return reply.status, (reply.message or {}).get("error", {}).get("code", 0)

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return [(each.agent, each.old, each.new) for _, each in self.service.monitor.history.after(0).changes]


@asynccontextmanager
async def opened(folder: Path, time, fake: Fake | None = None, **world: Any) -> AsyncIterator[Open]:
    """A service over two made-up agents that are well, after its first probes."""
    fake = fake or Fake()
    fake.put("harper", "10.0.0.1")
    fake.put("tech_research", "10.0.0.2")
    async with running(folder, time, fake, fake, **world) as service:
        await time.advance()
        yield Open(service)


async def written(store: RegistrationStore) -> None:
    """Return when the thread that writes has done all it was told before: it does one thing at a time."""
    await store.forget([])


def get(desk: Open, path: str, query: str = "") -> dict:
    document = desk.service.publisher.find("GET", path, query.encode())
    assert document.status == 200
    return json.loads(document.body)


class Names:
    """A DNS of the tests' own."""

    def __init__(self, **records: set[str]) -> None:
        self.records = {name.replace("_", "."): found for name, found in records.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> frozenset[str]:
        self.asked.append(host)
        if host not in self.records:
            raise NotFound
        return frozenset(self.records[host])
