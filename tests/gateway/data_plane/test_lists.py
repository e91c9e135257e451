"""Lists of an agent, filtered in every form in which they come."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pallas_gateway.data_plane import lists

TOOLS = [{"name": "echo", "description": "says so"}, {"name": "wipe"}, {"no": "name"}, "odd"]


def answer(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def filtered(data: bytes, *, stream: bool = False, others: bool = False) -> bytes:
    return lists.filtered(data, stream=stream, tool=lambda name: name == "echo", others=others)


def test_of_tools_those_that_may_be_called() -> None:
    body = answer(tools=TOOLS, nextCursor="2", cacheScope="public", ttlMs=60_000)
    expected = answer(tools=TOOLS[:1], nextCursor="2", cacheScope="private", ttlMs=60_000)
    assert json.loads(filtered(json.dumps(body).encode())) == expected


@pytest.mark.parametrize("key", ["prompts", "resources", "resourceTemplates"])
def test_other_lists_are_whole_or_empty(key: str) -> None:
    body = json.dumps(answer(**{key: [{"name": "echo"}]})).encode()
    assert json.loads(filtered(body)) == answer(**{key: []})
    assert json.loads(filtered(body, others=True)) == answer(**{key: [{"name": "echo"}]})


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_in_an_event_stream(newline: str) -> None:
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    half = json.dumps(answer(tools=TOOLS), indent=1).splitlines()
    lines = ["id: 0", "data: ", "", "event: message", f"data: {json.dumps(progress)}", ""]
    lines += ["event: message", "id: 1", *(f"data: {line}" for line in half), "", ""]
    events = filtered(newline.join(lines).encode(), stream=True).decode().split("\n\n")
    assert events[:2] == ["id: 0\ndata: ", f"event: message\ndata: {json.dumps(progress)}"]
    assert events[2].startswith("event: message\nid: 1\ndata: ")
    assert json.loads(events[2].partition("data: ")[2]) == answer(tools=TOOLS[:1])


def test_an_error_stays_as_it_is() -> None:
    error = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no tools"}}'
    assert filtered(error) == error
    assert filtered(b"") == b""


@pytest.mark.parametrize(
    "data",
    [b"{", b"\xff\xfe", b"\x1f\x8b\x08\x00", b"[" * 100_000, b"[]", b"7", json.dumps(answer(tools={"a": 1})).encode()],
)
def test_what_cannot_be_read_is_not_sent(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        filtered(data)


def test_no_cache_keeps_it_for_somebody_else() -> None:
    pairs = [(b"content-length", b"900"), (b"cache-control", b"public, max-age=60"), (b"mcp-session-id", b"s")]
    assert lists.head(pairs, 7) == [
        (b"mcp-session-id", b"s"),
        (b"cache-control", b"no-store"),
        (b"content-length", b"7"),
    ]


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b": alive\n\n"])
def test_the_first_event_is_filtered_too(start: bytes) -> None:
    event = b"data: " + json.dumps(answer(tools=TOOLS)).encode() + b"\n\n"
    events = filtered(start + event, stream=True)
    assert json.loads(events.partition(b"data: ")[2]) == answer(tools=TOOLS[:1])


@pytest.mark.parametrize("field", [b": ", b"\xef\xbb\xbfdata: ", b"Data: ", b""])
def test_of_an_event_nothing_is_sent_that_clients_ignore(field: bytes) -> None:
    message = json.dumps(answer(tools=TOOLS)).encode()
    events = b"data: " + json.dumps(answer(tools=[])).encode() + b"\n\n" + field + message + b"\nid: 2\n\n"
    assert b"wipe" not in filtered(events, stream=True)
    assert filtered(events, stream=True).endswith(b"\n\nid: 2\n\n")
