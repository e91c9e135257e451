"""Several calls in one request, before the service of `test_results`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.door import ERAS, MODERN, Door
from tests.gateway.own.tools.test_results import LOOKUP, SEARCH, Memory, before


async def batch(door: Door, calls: list[Any], era: str = "") -> dict[str, Any]:
    params: dict[str, Any] = {"calls": calls}
    headers = {"accept": "application/json, */*"}
    if era == MODERN:
        about = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        params["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call_batch"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call_batch", "params": params}
    body: dict[str, Any] = (await door.web.post("/mcp", json=message, headers=headers)).json()
    return body


@pytest.mark.parametrize("era", ["", *ERAS])
async def test_a_batch_has_an_answer_for_each_of_its_calls(era: str) -> None:
    async with before(Memory()) as door:
        calls = [
            {"name": "search_knowledge_base", "arguments": {**SEARCH, "limit": 1}},
            {"name": "lookup_entity", "arguments": {**LOOKUP, "tenant_id": "nobody"}},
            {"name": "lookup_entity", "arguments": {**LOOKUP, "query": "nobody"}},
            {"name": "create_agent"},
        ]
        found, refused, failed, wrong = (await batch(door, calls, era))["result"]["results"]
        assert found["result"]["structuredContent"]["count"] == 1
        assert (refused["error"]["code"], refused["error"]["data"]) == (-32000, {"reason": "unknown_tenant"})
        assert failed["result"]["isError"] is True
        assert wrong["error"]["data"] == {"field": "tenant_id", "reason": "Field required"}


async def test_each_call_of_a_batch_counts_and_there_are_not_too_many() -> None:
    call = {"name": "lookup_entity", "arguments": LOOKUP}
    async with before(Memory(), requests="8/minute", concurrent=5) as door:
        results = (await batch(door, [call] * 10))["result"]["results"]
        assert sum("result" in result for result in results) == 8
        assert {result["error"]["data"]["reason"] for result in results if "error" in result} == {"rate"}
        for calls in ([], [call] * 21, [{"arguments": {}}], ["lookup_entity"]):
            assert (await batch(door, calls))["error"]["code"] == -32602


async def test_the_answers_of_a_batch_have_a_bound_together() -> None:
    call = {"name": "search_knowledge_base", "arguments": {**SEARCH, "query": "large"}}
    async with before(Memory()) as door:
        results = (await batch(door, [call] * 4))["result"]["results"]
        assert ["result" in result for result in results].count(True) == 2
        assert {result["error"]["data"]["reason"] for result in results if "error" in result} == {"failed"}
