"""Messages that have been said: fast-agent copies each of them in depth twice on every turn of their conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from fast_agent import PromptMessageExtended
from mcp_types import ContentBlock, ImageContent, TextContent


class Kept(PromptMessageExtended):
    """The same message; a copy in depth of one with texts and images is made of copies of its blocks.

    pydantic's own goes through everything below, 0.1 ms a message, which was a third of a turn late in a conversation
    of ten. Strings are shared by every copy in any case.
    """

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        channels = self.channels or {}
        if self.tool_calls or self.tool_results or not all(map(_plain, (self.content, *channels.values()))):
            return super().__deepcopy__(memo)
        made = self.__copy__()
        made.__dict__["content"] = _copies(self.content)
        if self.channels is not None:
            made.__dict__["channels"] = {name: _copies(blocks) for name, blocks in channels.items()}
        return made


def kept(message: PromptMessageExtended) -> PromptMessageExtended:
    """`message` as one that is cheap to copy; it shares what is in it."""
    if isinstance(message, Kept):
        return message
    return Kept.model_construct(_fields_set=message.model_fields_set, **message.__dict__)


def _plain(blocks: Sequence[ContentBlock]) -> bool:
    return all(
        isinstance(block, TextContent | ImageContent) and block.annotations is None and block.meta is None
        for block in blocks
    )


def _copies(blocks: Sequence[ContentBlock]) -> list[ContentBlock]:
    return [block.__copy__() for block in blocks]
