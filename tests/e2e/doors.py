"""Replicas of a gateway on a cluster: their part of a fleet, PostgreSQL and Valkey on this machine, calls at one."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from pallas_contract.documents import audit_check
from pallas_gateway.state.postgres import Postgres
from tests.gateway.confirmation.test_calls import tool_call
from tests.gateway.state import stores

from .release import Release, call

AGENT = "till"
TOKENS = {name: f"{name}-of-the-doors-0123456789" for name in ("phone", "desk", "parent", "gateway", "audit")}
GATEWAY: dict[str, Any] = {
    "agents": [AGENT],
    "replicas": 2,
    "publish": False,
    "access": {"tokens": {name: {"file": f"keys/{name}"} for name in ("phone", "desk", "parent")}},
    "tenants": {"acme": {"callers": ["phone"], "concurrent": 1000}, "home": {"callers": ["desk"]}},
    "confirm": [{"agent": AGENT, "tools": [AGENT], "by": ["parent"]}],
    "audit": {"key": {"file": "keys/audit"}},
    "store": {"url": {"file": "keys/store"}},
    "counters": {"url": {"file": "keys/counts"}},
}
BEHIND: dict[str, Any] = {
    "card": f"agents/{AGENT}.md",
    "port": 8104,
    "publish": False,
    "instance_scope": "request",
    "access": {"tokens": {"gateway": {"file": "keys/gateway"}}},
}


@dataclass(frozen=True)
class Stores:
    """Both as this machine reaches them, and the texts of all secret files by which the fleet does."""

    postgres: str
    keys: Mapping[str, str]

    def values(self) -> dict[str, Any]:
        """Values of the chart: every secret, and a way to what is on the node."""
        return {
            "secrets": {f"keys-{name}": {"content": text} for name, text in self.keys.items()},
            "gateway": {"egressTo": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]},
        }

    async def chains(self, fleet: str) -> dict[str, list[dict[str, Any]]]:
        """Return the records of each chain of the audit of `fleet`, which follow each other."""
        store = Postgres(self.postgres, fleet, seconds=stores.LIMIT)
        text = f"SELECT chain, line FROM {store.schema}.audit ORDER BY chain, seq"
        try:
            rows = await store.run(lambda connection: connection.fetch(text))
        finally:
            await store.close()
        lines: dict[str, list[bytes]] = {}
        for row in rows:
            lines.setdefault(row["chain"], []).append(f"{row['line']}\n".encode())
        for chain, written in lines.items():
            checked = audit_check.check([(chain, written)], TOKENS["audit"].encode(), whole=True)
            assert checked.problems == [], chain
        return {chain: [json.loads(line) for line in written] for chain, written in lines.items()}


@contextmanager
def shared_state() -> Iterator[Stores]:
    """Both on this machine, which is the node, where its pods reach them, with a password."""
    nodes = json.loads(call("kubectl", "get", "nodes", "-o", "json").stdout)["items"]
    (address, *_) = [item["address"] for item in nodes[0]["status"]["addresses"] if item["type"] == "InternalIP"]
    password = secrets.token_hex(16)
    with stores.postgres(address, password) as rows, stores.valkey(address, password) as counts:
        urls = {
            "store": stores.postgres_url(rows, address, password),
            "counts": stores.valkey_url(counts, address, password),
        }
        yield Stores(stores.postgres_url(rows, password=password), {**TOKENS, **urls})


def pods(fleet: Release) -> dict[str, str]:
    """Name -> address of each pod of the gateway that takes calls."""
    found = [pod for pod in fleet.pods("gateway").values() if pod["status"].get("podIP")]
    return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in found}


class Door:
    """One replica, by the address of its pod: this machine is the node, which policies keep from none."""

    def __init__(self, web: httpx.AsyncClient, address: str) -> None:
        self._web = web
        self._url = f"http://{address}:8080"

    async def calls(self, tool: str, caller: str, **arguments: object) -> dict[str, Any]:
        """Return why a call of the agent's tool was refused; empty where it was answered."""
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        reply = await self._send("POST", f"/agents/{AGENT}/mcp", caller, tool_call(tool, **arguments), headers)
        line = next((line for line in reply.text.splitlines() if line.startswith("data:")), reply.text)
        answer = json.loads(line.removeprefix("data:"))
        if "error" not in answer:
            assert not answer["result"].get("isError"), answer
            return {}
        refused: dict[str, Any] = answer["error"]["data"]
        return refused

    async def until_answered(self, caller: str, *, within: float) -> None:
        """Wait until it reaches the agent, and its stores."""
        refused: dict[str, Any] = {}
        try:
            async with asyncio.timeout(within):
                while refused := await self.calls("get_health", caller):
                    await asyncio.sleep(1)
        except TimeoutError:
            raise AssertionError(f"after {within} s it still says {refused}") from None

    async def approve(self, confirmation: str) -> None:
        """Let one call through, as somebody else than its caller."""
        reply = await self._send("POST", f"/confirmations/{confirmation}", "parent", {"decision": "approve"}, {})
        assert reply.status_code == 200, reply.text

    async def _send(
        self, method: str, path: str, caller: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> httpx.Response:
        # by the name that its Service has: addresses of pods are nobody's URL
        more = {"host": "gateway:8080", "authorization": f"Bearer {TOKENS[caller]}"}
        return await self._web.request(method, f"{self._url}{path}", json=body, headers={**headers, **more})
