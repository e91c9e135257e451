"""What fast-agent copies on every turn, made equal and as deep as it has to be, in a part of the time.

It copies each message of a conversation in depth twice, those of the turn five times, and merges the parameters of
a request with the agent's five times, by way of a dump and a validation of both (decision 0061).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from fast_agent import PromptMessageExtended, RequestParams
from fast_agent.llm import fastagent_llm
from mcp_types import ContentBlock, ImageContent, TextContent
from pydantic import BaseModel

from pallas_agent_runtime.engine.patches import replaced

Merge = Callable[[RequestParams, RequestParams], RequestParams]
"""Takes an agent's parameters and those of a request, which go first."""

REMEMBERED = 64
"""Most merges whose outcome is kept: an agent has one or two for each of its models."""
_PLAIN = frozenset({TextContent, ImageContent})
_MODELS: tuple[type[BaseModel], ...] = (PromptMessageExtended, TextContent, ImageContent)
_SIMPLE = frozenset(
    kind for kind in _MODELS if not kind.__private_attributes__ and kind.model_config.get("extra") != "allow"
)
"""The classes whose objects have fields and nothing else."""
_SCALARS = frozenset({type(None), bool, int, float, str})
_HANDLER = "tool_execution_handler"
"""The one field with an object of somebody's own, another one for each call."""
_EMPTY: dict[str, type[list[Any]] | type[dict[str, Any]]] = {"messages": list, "template_vars": dict}
"""The fields that have a list or a mapping even where nobody gives one."""
_set = object.__setattr__  # a model's own looks for a field
_values = itemgetter(*(name for name in RequestParams.model_fields if name not in {_HANDLER, *_EMPTY}))


@contextmanager
def cheaper() -> Iterator[None]:
    """Have fast-agent's messages and parameters copied so meanwhile."""
    merge = getattr(fastagent_llm, "merge_request_params", None)
    with (
        replaced(PromptMessageExtended, "__deepcopy__", _copied),
        replaced(fastagent_llm, "merge_request_params", merge and Merges(merge)),
    ):
        yield


def _copied(message: PromptMessageExtended, memo: dict[int, Any] | None = None) -> PromptMessageExtended:
    """Return a copy in depth; of texts and images it is made of copies of these, whose strings are shared anyway.

    pydantic's own goes through everything below, five times as long.
    """
    content = _copies(message.content)
    channels = _channels(message.channels)
    other = message.tool_calls or message.tool_results or type(message) is not PromptMessageExtended
    if other or content is None or (channels is None and message.channels is not None):
        return BaseModel.__deepcopy__(message, memo)
    made = _shallow(message)
    own = made.__dict__
    own.update(content=content, channels=channels)
    for name in ("tool_calls", "tool_results"):
        if own[name] is not None:  # one without any
            own[name] = {}
    return made


def _channels(channels: Mapping[str, Sequence[ContentBlock]] | None) -> dict[str, list[ContentBlock]] | None:
    """Return copies, None where there are none or something in them is not plain."""
    if type(channels) is not dict:
        return None
    made = {}
    for name, blocks in channels.items():
        copied = _copies(blocks)
        if copied is None:
            return None
        made[name] = copied
    return made


def _copies(blocks: Sequence[ContentBlock]) -> list[ContentBlock] | None:
    """Return copies of texts and images, None where anything else is among them."""
    if type(blocks) is not list:
        return None
    made: list[ContentBlock] = []
    for block in blocks:
        if type(block) not in _PLAIN or block.annotations is not None or block.meta is not None:
            return None
        made.append(_shallow(block))
    return made


def _shallow[M: BaseModel](model: M) -> M:
    """Return what pydantic's `__copy__` does, in two thirds of the time where there are fields and nothing else."""
    kind = type(model)
    if kind not in _SIMPLE:
        return model.__copy__()
    made = kind.__new__(kind)
    _set(made, "__dict__", model.__dict__.copy())
    _set(made, "__pydantic_fields_set__", model.__pydantic_fields_set__.copy())
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


class Merges:
    """`merge`, asked once for each pair of parameters that has nothing but plain values; a copy of that for the rest.

    Parameters with anything nested (metadata, tools, a schema) are always merged anew, and so are those that
    `merge` refuses.
    """

    def __init__(self, merge: Merge) -> None:
        self._merge = merge
        self._merged: dict[tuple[Any, ...], RequestParams] = {}

    def __call__(self, default_params: RequestParams, provided_params: RequestParams) -> RequestParams:
        first = _key(default_params)
        second = _key(provided_params)
        if first is None or second is None:
            return self._merge(default_params, provided_params)
        merged = self._merged.get((first, second))
        given = provided_params if _HANDLER in provided_params.model_fields_set else default_params
        handler = getattr(given, _HANDLER)
        if merged is None:
            merged = self._merge(default_params, provided_params)
            if getattr(merged, _HANDLER) is not handler or _key(merged) is None:
                return merged
            if len(self._merged) >= REMEMBERED:
                self._merged.clear()
            self._merged[first, second] = merged
            merged.__dict__[_HANDLER] = None  # it is not to outlive its call
        made = merged.__copy__()
        made.__dict__.update({name: empty() for name, empty in _EMPTY.items()}, **{_HANDLER: handler})
        return made


def _key(params: RequestParams) -> tuple[Any, ...] | None:
    """Return all that decides how parameters are merged, None where they have more than plain values.

    Types are in it, since 1, 1.0 and True are equal and not all of them valid.
    """
    own = params.__dict__
    if type(params) is not RequestParams or any(own[name] for name in _EMPTY):
        return None
    values = _values(own)
    types = tuple(map(type, values))
    if not _SCALARS.issuperset(types):
        return None
    return values, types, type(own[_HANDLER]), frozenset(params.model_fields_set)
