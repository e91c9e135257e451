"""Messages, images, conversations and delegation, asked for by the SDK's own client in both eras (seed 000)."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.agent_runtime.pair.calls import DELEGATED, STATELESS, call, text_of

pytestmark = pytest.mark.slow


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()


@pytest.mark.parametrize("tool", ["send_message", "harper"])
async def test_a_message_is_answered(fleet: Any, era: str, tool: str) -> None:
    result = await call(fleet, era, tool, {"message": "hello"})
    assert (text_of(result), result.is_error) == ("hello", False)


async def test_a_model_is_wanted_with_the_provider_that_the_agent_has(fleet: Any, era: str) -> None:
    for wanted, expected in (
        ("openai", "hello"),
        ("azure", "model: this agent runs on openai.local-vision, not on azure.local-vision"),
    ):
        meta = {"io.pallas-kit/model": f"{wanted}.local-vision"}
        assert text_of(await call(fleet, era, "send_message", {"message": "hello"}, meta=meta)) == expected


async def test_an_image_reaches_the_model_and_the_history_unchanged(fleet: Any, era: str, model: Any) -> None:
    model.requests.clear()
    arguments = {"message": "look", "images": [{"data": PNG, "mime_type": "image/png"}], "session_id": f"image-{era}"}
    async with Client(fleet.url("harper"), mode=era) as client:
        await client.call_tool("harper", arguments)
        history = await client.get_prompt("harper_history", {"session_id": f"image-{era}"})
    sent = [part for part in model.requests[-1]["messages"][-1]["content"] if part["type"] == "image_url"]
    assert [part["image_url"]["url"] for part in sent] == [f"data:image/png;base64,{PNG}"]
    assert [message.content.data for message in history.messages if message.content.type == "image"] == [PNG]


async def test_an_image_the_model_cannot_see_is_refused_not_dropped(fleet: Any, era: str) -> None:
    images = [{"data": PNG, "mime_type": "image/gif"}]
    result = await call(fleet, era, "send_message", {"message": "look", "images": images})
    assert (text_of(result), result.is_error) == ("images: the model local-vision does not accept image/gif", True)


async def test_bad_arguments_are_tool_errors_that_name_the_field(fleet: Any, era: str) -> None:
    result = await call(
        fleet, era, "send_message", {"message": "x", "images": [{"data": "?", "mime_type": "image/png"}]}
    )
    assert (text_of(result), result.is_error) == ("images[0].data: is not base64", True)


async def test_an_unknown_tool_is_a_protocol_error(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        with pytest.raises(MCPError, match="Unknown tool: nope") as caught:
            await client.call_tool("nope", {})
    assert caught.value.code == -32602


async def test_a_large_image_passes_and_a_larger_body_does_not(fleet: Any) -> None:
    data = base64.b64encode(bytes(5 << 20)).decode()
    result = await call(
        fleet, STATELESS, "harper", {"message": "big", "images": [{"data": data, "mime_type": "image/png"}]}
    )
    assert text_of(result) == "big"
    data = base64.b64encode(bytes(25 << 20)).decode()
    result = await call(
        fleet, STATELESS, "harper", {"message": "big", "images": [{"data": data, "mime_type": "image/png"}]}
    )
    said = "images[0].data: too large; message and images may have 33554432 bytes together"
    assert (text_of(result), result.is_error) == (said, True)


async def test_what_is_far_too_large_is_refused_unread_and_in_words(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        with pytest.raises(MCPError, match="too large: message and images may have 33554432 bytes together") as refused:
            await client.call_tool("harper", {"message": "x" * (41 << 20)})
        assert refused.value.error.code == -32600
        assert text_of(await client.call_tool("harper", {"message": "hello"})) == "hello"


async def test_a_conversation_goes_on_under_its_handle_and_for_its_caller_only(fleet: Any, era: str) -> None:
    handle = {"session_id": f"talk-{era}"}

    async with fleet.client("harper", era, "alice") as client:
        await client.call_tool("send_message", {"message": "one", **handle})
        await client.call_tool("harper", {"message": "two", **handle})
        history = await client.get_prompt("harper_history", handle)
    spoken = [(message.role, message.content.text) for message in history.messages]
    assert spoken == [("user", "one"), ("assistant", "one"), ("user", "two"), ("assistant", "two")]
    for other in (fleet.client("harper", era, "mallory"), Client(fleet.url("harper"), mode=era)):
        async with other as client:
            assert (await client.get_prompt("harper_history", handle)).messages == []


async def test_without_a_handle_a_session_remembers_and_a_stateless_call_does_not(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        await client.call_tool("harper", {"message": "implicit"})
        history = await client.get_prompt("harper_history", {})
    assert len(history.messages) == (2 if era == "legacy" else 0)


async def test_many_calls_at_once_are_not_mixed_up(fleet: Any, era: str) -> None:
    async with Client(fleet.url("harper"), mode=era) as client:
        alone = [client.call_tool("harper", {"message": f"m{number}"}) for number in range(24)]
        together = [client.call_tool("harper", {"message": "t", "session_id": f"par-{era}"}) for _ in range(4)]
        results = await asyncio.gather(*alone, *together)
        history = await client.get_prompt("harper_history", {"session_id": f"par-{era}"})
    assert [text_of(result) for result in results] == [f"m{number}" for number in range(24)] + ["t"] * 4
    assert len(history.messages) == 8


async def test_delegation_by_the_one_tool_of_a_sub_agent_is_reported_step_by_step(
    fleet: Any, model: Any, toolkit: Any, era: str
) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    result = await call(fleet, era, "harper", {"message": "delegate what is pallas?"}, progress_callback=on_progress)
    assert text_of(result).split("\n\n") == DELEGATED
    assert [message for *_, message in seen] == [
        "harper step 1 (llm)",
        "harper step 2 (tool)",
        "tech_research/tech_research__tech_research: started",
        "tech_research step 1 (llm)",
        "tech_research/tech_research__tech_research: completed",
        "harper step 3 (llm)",
    ]
    asked = next(body for body in model.requests if toolkit.said(body["messages"][-1]).startswith("delegate what"))
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["tech_research__tech_research"]
    assert [progress for progress, *_ in seen] == [1, 2, 3, 4, 5, 6]
    assert [total for _, total, _ in seen] == [None, None, None, None, 5, None]


@pytest.mark.parametrize("token", [None, "tok-1", 0])
async def test_progress_is_sent_to_those_who_ask_for_it(fleet: Any, token: str | int | None) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    } | ({} if token is None else {"progressToken": token})
    params = {"name": "harper", "arguments": {"message": "delegate x"}, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": STATELESS,
        "mcp-method": "tools/call",
        "mcp-name": "harper",
    }
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    async with httpx2.AsyncClient(timeout=30) as http:
        reply = await http.post(fleet.url("harper"), headers=headers, json=body)
    assert reply.status_code == 200
    assert reply.text.count("notifications/progress") == (0 if token is None else 6)
