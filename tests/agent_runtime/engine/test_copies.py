"""Messages and parameters are copied as pydantic and fast-agent would copy them."""

from __future__ import annotations

import copy
import gc
import math
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fast_agent import LlmStopReason, PromptMessageExtended, RequestParams
from fast_agent.llm import fastagent_llm
from fast_agent.llm.request_param_resolution import merge_request_params
from mcp_types import (
    Annotations,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ModelPreferences,
    TextContent,
    Tool,
)
from pydantic import BaseModel, ValidationError

from pallas_agent_runtime.calls.progress import Progress
from pallas_agent_runtime.engine import copies


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
    "no calls": PromptMessageExtended(role="assistant", content=[text()], tool_calls={}, tool_results={}, channels={}),
    "sequence": PromptMessageExtended(role="user", content=[text()], channels={"timing": (text(),)}),
    "annotated": PromptMessageExtended(role="user", content=[text(annotations=Annotations(audience=["user"]))]),
    "meta": PromptMessageExtended(role="user", content=[text(_meta={"k": {"deep": [1]}})]),
    "call": PromptMessageExtended(role="assistant", content=[text()], tool_calls={"1": CALL}),
    "result": PromptMessageExtended(role="user", tool_results={"1": CallToolResult(content=[text()])}),
}


@pytest.fixture(autouse=True)
def _cheaper() -> Iterator[None]:
    with copies.cheaper():
        yield


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("how", [copy.deepcopy, lambda message: message.model_copy(deep=True)])
def test_a_copy_is_the_same_and_shares_nothing_that_can_change(name: str, how: Any) -> None:
    """Every object below a copy is another one, unless it cannot be changed."""
    message = SAID[name]
    made = how(message)
    theirs = BaseModel.__deepcopy__(message)
    assert type(made) is PromptMessageExtended
    assert made == theirs == message
    assert made.model_dump() == theirs.model_dump()
    assert made.model_fields_set == message.model_fields_set
    assert kinds(made) == kinds(theirs)
    assert below(made).isdisjoint(below(message))


def below(value: Any) -> set[int]:
    """The identities of all objects in `value` that could be changed."""
    if isinstance(value, BaseModel):
        return {id(value), id(value.__dict__), id(value.model_fields_set)}.union(*map(below, value.__dict__.values()))
    if isinstance(value, dict):
        return {id(value)}.union(*map(below, value.values()))
    if isinstance(value, tuple):
        return set[int]().union(*map(below, value))
    return {id(value)}.union(*map(below, value)) if isinstance(value, list) else set()


def kinds(value: Any) -> Any:
    """The classes of `value` and all below it."""
    if isinstance(value, BaseModel):
        return type(value), {name: kinds(part) for name, part in value.__dict__.items()}
    if isinstance(value, dict):
        return type(value), {key: kinds(part) for key, part in value.items()}
    return (type(value), [*map(kinds, value)]) if isinstance(value, list | tuple) else type(value)


def test_pydantic_copies_only_what_is_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    theirs = BaseModel.__deepcopy__
    monkeypatch.setattr(BaseModel, "__deepcopy__", lambda self, memo=None: asked.append("") or theirs(self, memo))
    slow = []
    for name, message in SAID.items():
        asked.clear()
        copy.deepcopy(message)
        slow += [name] if asked else []
    assert slow == ["sequence", "annotated", "meta", "call", "result"]


def test_a_message_of_a_class_of_its_own_is_copied_by_pydantic() -> None:
    class Own(PromptMessageExtended):
        more: list[int]

    message = Own(role="user", content=[text()], more=[1])
    made = copy.deepcopy(message)
    assert made == message
    assert below(made).isdisjoint(below(message))


def test_afterwards_all_is_as_it_was() -> None:
    with copies.cheaper():
        assert PromptMessageExtended.__deepcopy__ is copies._copied
    assert PromptMessageExtended.__deepcopy__ is copies._copied  # of the fixture
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(fastagent_llm, "merge_request_params")
        with copies.cheaper():  # a version without it
            assert not hasattr(fastagent_llm, "merge_request_params")


class Asked:
    """fast-agent's own merge, and how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, first: RequestParams, second: RequestParams) -> RequestParams:
        self.count += 1
        return merge_request_params(first, second)


DEFAULTS = RequestParams(model="m", max_tokens=70_000, system_prompt="You repeat.", max_iterations=99, use_history=True)
SAFE = {
    "nothing": RequestParams(),
    "values": RequestParams(temperature=0.5, max_tokens=7, use_history=False, model=None),
    "automatic": DEFAULTS.model_copy(update={"streaming_timeout": 5.0}),
    "timeout": RequestParams(streaming_timeout=None),
    "progress": RequestParams(tool_execution_handler=Progress(lambda *_: None, {}, frozenset())),  # type: ignore[arg-type,return-value]
}
NESTED = {
    "metadata": RequestParams(metadata={"user": {"tags": ["a"]}}),
    "_meta": RequestParams(_meta={"progress_token": 1, "own": {"deep": [1]}}),
    "mcp metadata": RequestParams(mcp_metadata={"trace": {"ids": [1]}}),
    "template": RequestParams(template_vars={"names": ["a"]}),
    "schema": RequestParams(structured_schema={"properties": {"a": {"type": "string"}}}),
    "stops": RequestParams(stop_sequences=["end"]),
    "tools": RequestParams(tools=[Tool(name="t", input_schema={"type": "object", "properties": {}})]),
    "preferences": RequestParams(model_preferences=ModelPreferences(speed_priority=0.1)),
    "format": RequestParams(response_format={"type": "json"}),
}


@pytest.mark.parametrize("name", [*SAFE, *NESTED])
def test_merged_parameters_are_the_same_and_share_nothing_that_can_change(name: str) -> None:
    given = (SAFE | NESTED)[name]
    asked = Asked()
    merge = copies.Merges(asked)
    theirs = merge_request_params(DEFAULTS, given)
    made = [merge(DEFAULTS, given.model_copy()) for _ in range(3)]
    assert asked.count == (1 if name in SAFE else 3)
    for one in made:
        assert type(one) is RequestParams
        assert one.__dict__ == theirs.__dict__
        assert list(map(kinds, one.__dict__.values())) == list(map(kinds, theirs.__dict__.values()))
        assert one.model_fields_set == theirs.model_fields_set
        assert one.tool_execution_handler is given.tool_execution_handler
        assert below(one).isdisjoint(below(DEFAULTS))
    assert below(made[1]).isdisjoint(below(made[2]))


def test_what_becomes_of_one_is_not_seen_in_the_next() -> None:
    merge = copies.Merges(merge_request_params)
    for _ in range(3):
        one = merge(DEFAULTS, RequestParams())
        assert (one.template_vars, one.messages, one.temperature) == ({}, [], None)
        one.template_vars["left"] = "over"
        one.messages.append("said")  # type: ignore[arg-type]
        one.temperature = 1.0


def test_a_handler_is_that_of_its_own_call() -> None:
    merge = copies.Merges(merge_request_params)
    for _ in range(3):
        handler = Progress(lambda *_: None, {}, frozenset())  # type: ignore[arg-type,return-value]
        with_one = merge(DEFAULTS, RequestParams(tool_execution_handler=handler))
        assert with_one.tool_execution_handler is handler
        assert merge(DEFAULTS, RequestParams()).tool_execution_handler is None
        assert merge(with_one, RequestParams()).tool_execution_handler is handler


def test_a_handler_does_not_outlive_its_call() -> None:
    merge = copies.Merges(merge_request_params)
    handler = Progress(lambda *_: None, {}, frozenset())  # type: ignore[arg-type,return-value]
    gone = weakref.ref(handler)
    merge(DEFAULTS, RequestParams(tool_execution_handler=handler))
    del handler
    gc.collect()
    assert gone() is None


def test_what_is_equal_and_no_number_of_the_kind_is_told_apart() -> None:
    merge = copies.Merges(merge_request_params)
    numbers = RequestParams(max_tokens=1, temperature=1.0)
    assert merge(DEFAULTS, numbers).max_tokens == 1
    numbers.max_tokens = True
    for _ in range(2):
        with pytest.raises(ValidationError):
            merge(DEFAULTS, numbers)
    numbers.max_tokens = 1
    numbers.temperature = 1
    assert type(merge(DEFAULTS, numbers).temperature) is type(merge_request_params(DEFAULTS, numbers).temperature)


def test_a_key_that_was_given_is_told_from_one_that_was_not() -> None:
    merge = copies.Merges(merge_request_params)
    assert merge(DEFAULTS, RequestParams()).model == "m"
    assert merge(DEFAULTS, RequestParams(model=None)).model is None
    automatic = merge(DEFAULTS, RequestParams())
    assert "streaming_timeout" not in automatic.model_fields_set


def test_what_is_remembered_is_bounded() -> None:
    asked = Asked()
    merge = copies.Merges(asked)
    for number in range(copies.REMEMBERED * 2):
        assert merge(DEFAULTS, RequestParams(max_tokens=number + 1)).max_tokens == number + 1
    assert len(merge._merged) <= copies.REMEMBERED
    assert math.isnan(merge(DEFAULTS, RequestParams(temperature=math.nan)).temperature or 0)


def test_a_class_of_its_own_is_merged_by_fast_agent() -> None:
    class Own(RequestParams):
        more: int = 1

    asked = Asked()
    merge = copies.Merges(asked)
    for _ in range(2):
        merge(DEFAULTS, Own(temperature=1.0))
    assert asked.count == 2
