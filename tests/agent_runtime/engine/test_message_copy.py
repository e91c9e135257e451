"""A message that was said is copied as pydantic would copy it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from fast_agent import LlmStopReason, PromptMessageExtended
from mcp_types import Annotations, CallToolRequest, CallToolRequestParams, CallToolResult, ImageContent, TextContent

from pallas_agent_runtime.engine import from_json, to_json
from pallas_agent_runtime.engine.message_copy import Kept, kept


def text(words: str = "hi", **more: Any) -> TextContent:
    return TextContent(type="text", text=words, **more)


CALL = CallToolRequest(method="tools/call", params=CallToolRequestParams(name="t", arguments={"a": [1]}))
SAID = {
    "text": PromptMessageExtended(role="user", content=[text(), text("more")]),
    "image": PromptMessageExtended(
        role="user", content=[ImageContent(type="image", data="aGk=", mime_type="image/png")]
    ),
    "channels": PromptMessageExtended(
        role="assistant",
        content=[text()],
        channels={"timing": [text("5 ms")]},
        stop_reason=LlmStopReason.END_TURN,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
    ),
    "annotated": PromptMessageExtended(role="user", content=[text(annotations=Annotations(audience=["user"]))]),
    "meta": PromptMessageExtended(role="user", content=[text(_meta={"k": {"deep": [1]}})]),
    "call": PromptMessageExtended(role="assistant", content=[text()], tool_calls={"1": CALL}),
    "result": PromptMessageExtended(role="user", tool_results={"1": CallToolResult(content=[text()])}),
}


@pytest.mark.parametrize("name", SAID)
def test_a_copy_is_the_same_and_shares_nothing_that_can_change(name: str) -> None:
    """Every object below a copy is another one, unless it cannot be changed."""
    message = kept(SAID[name])
    assert isinstance(message, Kept)
    made = message.model_copy(deep=True)
    assert made.model_dump() == message.model_dump() == SAID[name].model_dump()
    assert made.model_fields_set == SAID[name].model_fields_set
    assert below(made).isdisjoint(below(message))


def below(value: Any) -> set[int]:
    """The identities of all objects in `value` that could be changed."""
    if hasattr(value, "model_fields_set"):
        return {id(value), id(value.__dict__)}.union(*map(below, value.__dict__.values()))
    if isinstance(value, dict):
        return {id(value)}.union(*map(below, value.values()))
    return {id(value)}.union(*map(below, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("name", SAID)
def test_it_is_written_and_read_like_any_other(name: str) -> None:
    (read,) = from_json(to_json([kept(SAID[name])]))
    assert read.model_dump() == from_json(to_json([SAID[name]]))[0].model_dump()
    assert kept(kept(SAID[name])) == kept(SAID[name])


def test_pydantic_copies_only_what_is_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    theirs = PromptMessageExtended.__deepcopy__
    monkeypatch.setattr(
        PromptMessageExtended, "__deepcopy__", lambda self, memo=None: asked.append("") or theirs(self, memo)
    )
    slow = []
    for name, message in SAID.items():
        asked.clear()
        copy.deepcopy(kept(message))
        slow += [name] if asked else []
    assert slow == ["annotated", "meta", "call", "result"]
