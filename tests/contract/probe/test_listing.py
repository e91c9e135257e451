"""Servers that shake hands with anybody, and what becomes of it when their tools and prompts are asked for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pallas_contract.documents.reason import OK
from pallas_contract.probe import probe
from pallas_contract.probe.probe import LEGACY, MODERN, Target

pytestmark = pytest.mark.usefixtures("patient")

HAS = {"tools": {}, "prompts": {}}
MODERN_HANDSHAKE = {"server/discover": {"supportedVersions": [MODERN], "capabilities": HAS}}
LEGACY_HANDSHAKE = {"initialize": {"protocolVersion": LEGACY, "capabilities": HAS}}
ERAS = pytest.mark.parametrize("handshake", [MODERN_HANDSHAKE, LEGACY_HANDSHAKE], ids=[MODERN, LEGACY])
LISTS: dict[str, Any] = {"tools/list": {"tools": []}, "prompts/list": {"prompts": []}}


def failure(code: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "s3cret of the server"}}


def target(url: str, seconds: float = 60.0) -> Target:
    return Target(url, headers={"authorization": "Bearer k"}, lists=seconds)


def methods(server: Any) -> list[str]:
    return [asked.json["method"] if asked.method == "POST" else asked.method for asked in server.asked]


@ERAS
async def test_a_server_that_lists_what_it_has_is_well(serve, mcp, handshake: dict[str, Any]) -> None:
    server = await serve(mcp(handshake | LISTS, session="s1" if handshake is LEGACY_HANDSHAKE else ""))
    result = await probe.probe(target(server.url))
    assert (result.state, result.reason, result.failed) == ("ok", OK, "")
    lists = ["tools/list", "prompts/list"]
    legacy = ["server/discover", "initialize", "notifications/initialized", *lists, "DELETE"]
    assert methods(server) == (legacy if handshake is LEGACY_HANDSHAKE else ["server/discover", *lists])
    assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer k"}


@ERAS
@pytest.mark.parametrize(
    ("refused", "state", "code", "message"),
    [
        ({"tools/list": 401}, "unauthenticated", "Unauthorized", "tools/list: reachable, needs credentials (HTTP 401)"),
        ({"tools/list": 403}, "unauthenticated", "Unauthorized", "tools/list: reachable, needs credentials (HTTP 403)"),
        ({"tools/list": 500}, "error", "HttpError", "tools/list: HTTP 500"),
        ({"tools/list": 404}, "error", "HttpError", "tools/list: HTTP 404"),
        ({"tools/list": failure(-32603)}, "error", "JsonRpcError", "tools/list: JSON-RPC error -32603"),
        ({"tools/list": {"tools": "none"}}, "error", "NotMcp", "tools/list: not an MCP answer"),
        ({"prompts/list": 500}, "error", "HttpError", "prompts/list: HTTP 500"),
    ],
)
async def test_a_list_that_is_refused_is_a_finding_though_the_handshake_was_good(
    serve, mcp, handshake: dict[str, Any], refused: dict[str, Any], state: str, code: str, message: str
) -> None:
    server = await serve(mcp(handshake | LISTS | refused))
    result = await probe.probe(target(server.url))
    assert (result.state, result.reason.code, result.reason.message) == (state, code, message)
    assert result.era == (MODERN if handshake is MODERN_HANDSHAKE else LEGACY)
    assert result.failed in refused


async def test_nothing_is_listed_that_nobody_wants_or_has(serve, mcp) -> None:
    server = await serve(mcp(MODERN_HANDSHAKE | {"tools/list": 500}))
    assert (await probe.probe(Target(server.url))).state == "ok"
    bare = await serve(mcp({"server/discover": {"supportedVersions": [MODERN], "capabilities": {}}}))
    assert (await probe.probe(target(bare.url))).state == "ok"
    assert methods(server) == methods(bare) == ["server/discover"]


@pytest.mark.parametrize("reply", [429, {"tools": [{"name": "x" * 65536}]}], ids=["slow down", "long"])
async def test_an_answer_that_says_nothing_against_it_changes_nothing(serve, mcp, reply: Any) -> None:
    server = await serve(mcp(MODERN_HANDSHAKE | LISTS | {"tools/list": reply}))
    assert (await probe.probe(target(server.url))).reason == OK


async def test_a_list_that_never_comes_has_a_deadline_of_its_own(serve) -> None:
    async def hang(asked: Any, writer: asyncio.StreamWriter) -> None:
        if asked.json["method"] != "server/discover":
            await asyncio.Event().wait()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": MODERN_HANDSHAKE["server/discover"]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        writer.write(body)

    server = await serve(hang)
    result = await probe.probe(target(server.url, 0.05))
    assert (result.state, result.reason.message) == ("error", "tools/list: no answer in 0.05 s")
    assert result.latency >= 0.05


async def test_what_a_server_says_is_null_it_does_not_have(serve, mcp) -> None:
    capabilities = {"tools": {}, "prompts": None}
    handshake = {"server/discover": {"supportedVersions": [MODERN], "capabilities": capabilities}}
    server = await serve(mcp(handshake | {"tools/list": {"tools": []}, "prompts/list": failure(-32601)}))
    assert (await probe.probe(target(server.url))).state == "ok"
    assert methods(server) == ["server/discover", "tools/list"]
