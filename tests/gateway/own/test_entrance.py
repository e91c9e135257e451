"""Requests to `/mcp` that do not come to the transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pallas_contract.fleet.access_model import Tenant
from pallas_contract.fleet.model import Fleet
from pallas_contract.fleet.resolved import resolve
from pallas_gateway.own.entrance import MAX_BODY, MOST_VALUES
from pallas_gateway.tenants import Tenants
from pallas_service.http.bodies import AT_ONCE
from tests.gateway.door import LIMIT, Door, opened

FLEET = resolve(Fleet.model_validate({"name": "x", "agents": {"scout": {"card": "a.md", "port": 8101}}}))
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@asynccontextmanager
async def before() -> AsyncIterator[Door]:
    async with (
        asyncio.timeout(60),
        opened({"scout": "http://127.0.0.1:1/mcp"}, tenants=Tenants({"acme": Tenant()}), fleet=FLEET) as door,
    ):
        yield door


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", None])
async def test_there_is_no_stream_to_listen_to(method: str, version: str | None) -> None:
    async with before() as door:
        headers = {"accept": "text/event-stream"} | ({"mcp-protocol-version": version} if version else {})
        reply = await door.web.request(method, "/mcp", headers=headers)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
        assert reply.json()["error"]["data"] == {"reason": "malformed"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("{", -32700),
        ('{"a": 1, "a": 2}', -32700),
        ("\xff", -32700),
        ("[]", -32600),
        ('{"jsonrpc": "2.0", "id": 7}', -32600),
        ('{"id": 7, "method": "ping"}', -32600),
    ],
)
async def test_what_is_no_request_has_the_codes_of_the_seed(content: str, code: int) -> None:
    async with before() as door:
        headers = {"content-type": "application/json"}
        reply = await door.web.post("/mcp", content=content.encode("latin-1"), headers=headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, code)
        assert reply.json()["error"]["data"] == {"reason": "malformed"}


async def test_a_body_has_a_limit_in_bytes_and_values() -> None:
    async with before() as door:

        async def chunked() -> AsyncIterator[bytes]:
            for _ in range(5):
                yield b" " * (MAX_BODY // 4)

        many = json.dumps({**PING, "params": {"_meta": {"x": [0] * MOST_VALUES}}})
        for content in (b" " * (MAX_BODY + 1), chunked(), many):
            reply = await door.web.post("/mcp", content=content, headers={"content-type": "application/json"})
            assert (reply.status_code, reply.json()["error"]["data"]) == (413, {"reason": "too_large"})
        commas = {**PING, "params": {"_meta": {"x": "," * 10 * MOST_VALUES}}}
        assert (await door.web.post("/mcp", json=commas)).json()["result"] == {}
        assert door.plane.bodies.left == AT_ONCE * LIMIT


async def test_its_bodies_have_the_room_of_all() -> None:
    async with before() as door:
        large = {**PING, "params": {"_meta": {"x": "a" * (MAX_BODY // 2)}}}
        assert (await door.web.post("/mcp", json=large)).json()["result"] == {}
        door.plane.bodies.left = MAX_BODY // 2
        reply = await door.web.post("/mcp", json=large)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
        error = reply.json()["error"]
        assert (error["code"], error["data"]) == (-32603, {"reason": "busy"})
        assert door.plane.bodies.left == MAX_BODY // 2
        assert (await door.web.post("/mcp", json=PING)).json()["result"] == {}
