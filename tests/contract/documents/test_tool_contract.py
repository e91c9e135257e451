"""The contract of a tool: what counts in it, and what does not."""

from __future__ import annotations

from pallas_contract.documents.tool_contract import ToolContract, digest, tool_contract

TOOL = {"name": "a", "inputSchema": {"type": "object", "x": 1}, "annotations": {"readOnlyHint": True}}


def test_the_order_of_keys_and_the_words_are_no_difference() -> None:
    same = {"description": "other words", **TOOL, "inputSchema": {"x": 1, "type": "object"}}
    assert tool_contract(same) == tool_contract(TOOL)


def test_each_part_counts_by_itself() -> None:
    assert tool_contract({"name": "a"}) == ToolContract("none")
    other = tool_contract(TOOL | {"outputSchema": {}})
    assert (other.input, other.annotations) == (tool_contract(TOOL).input, tool_contract(TOOL).annotations)
    assert (tool_contract(TOOL).output, len(other.output)) == ("", 16)
    assert digest({}) != digest([]) != digest("")
