"""What a body asks for, and bodies of which nobody may say what they ask for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp.shared.inbound import encode_header_value
from mcp_types import HEADER_MISMATCH, INVALID_REQUEST, PARSE_ERROR
from starlette.datastructures import Headers

from pallas_contract.names import META_MODEL, META_SECONDS
from pallas_gateway.data_plane.message import (
    MOST_ID,
    MOST_VALUES,
    Malformed,
    Message,
    TooManyValues,
    check,
    check_encoding,
    parse,
)


def body(method: str, params: Any = None, request_id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (body("tools/call", {"name": "send"}), Message("tools/call", "send", 1)),
        (
            body("prompts/get", {"name": "history"}, "a"),
            Message("prompts/get", "history", "a", more={"name": "history"}),
        ),
        (body("resources/read", {"uri": "x://y"}), Message("resources/read", "x://y", 1, more={"uri": "x://y"})),
        (body("tasks/get", {"taskId": "t-1"}), Message("tasks/get", "t-1", 1)),
        (body("tools/list", {"name": "send"}), Message("tools/list", None, 1)),
        (body("tools/call", ["send"], True), Message("tools/call", None, None)),
        (body("tools/call", {"name": 1}), Message("tools/call", None, 1)),
        (body("tools/call", {"name": "send", "arguments": None}), Message("tools/call", "send", 1)),
        (
            body("tools/call", {"name": "send", "task": {}, "_meta": {META_MODEL: "large", META_SECONDS: "9"}}),
            Message("tools/call", "send", 1, more={"task": {}, "_meta": {META_MODEL: "large"}}),
        ),
        (body("tools/call", {"name": "send", "_meta": ["x"]}), Message("tools/call", "send", 1)),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', Message("notifications/initialized")),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', Message()),
    ],
)
def test_method_name_and_id(data: bytes, expected: Message) -> None:
    assert parse(data) == expected


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", PARSE_ERROR),
        (b'{"method": "ping"', PARSE_ERROR),
        (body("ping").decode().encode("utf-16"), PARSE_ERROR),
        (b"\xef\xbb\xbf" + body("ping"), PARSE_ERROR),
        (b'{"method":"ping","params":{"name":"a","name":"b"}}', PARSE_ERROR),
        (b'{"method":"ping","params":{"x":[{"y":NaN}]}}', PARSE_ERROR),
        (b'{"method":"ping","id":' + b"9" * 5000 + b"}", PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
        (b"[" + body("ping") + b"]", INVALID_REQUEST),
        (b'"ping"', INVALID_REQUEST),
        (body("tools/call", {"name": "send", "arguments": ["rm", "-rf"]}), INVALID_REQUEST),
        (body("tools/call", {"name": "send", "arguments": "text"}), INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":["ping"]}', INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', INVALID_REQUEST),
        (b'{"id":1,"method":"ping","Method":"tools/call","params":{"name":"send"}}', INVALID_REQUEST),
        (b'{"id":1,"result":{},"METHOD":"tools/call","params":{"name":"send"}}', INVALID_REQUEST),
        (b'{"id":1,"method":"ping","param\\u017f":{"name":"send"}}', INVALID_REQUEST),
        (body("tools/call", {"name": "send", "NAME": "wipe"}), INVALID_REQUEST),
        (body("tools/call", {"name": "send", "name\0": "wipe"}), INVALID_REQUEST),
        (body("tools/call", {"name": "send", "arguments": {}, "Arguments": {"path": "/"}}), INVALID_REQUEST),
        (body("resources/read", {"uri": "x://y", "ur\u0131": "x://z"}), INVALID_REQUEST),
    ],
)
def test_what_parsers_could_read_differently_is_refused(data: bytes, code: int) -> None:
    with pytest.raises(Malformed) as caught:
        parse(data)
    assert caught.value.code == code


VALUES = MOST_VALUES
TEXT = 'a,b\n"[{\\' * VALUES


@pytest.mark.parametrize(
    "data",
    [
        body("x", [[]] * (VALUES // 2)),
        body("x", [{}] * (VALUES // 2)),
        body("x", [1] * VALUES),
        body("x", {str(number): "," for number in range(VALUES)}),
        body("x", [TEXT, *[[]] * (VALUES // 2)]),
        b'{"method":"' + b"," * VALUES + b',"' + b'""' * (3 * VALUES),
        b'{"method":"x","params":"\\\\",' + b"[]," * VALUES,
    ],
    ids=["arrays", "objects", "numbers", "members", "beside a text", "strings", "escaped"],
)
def test_a_body_of_too_many_values_is_not_taken_apart(data: bytes) -> None:
    with pytest.raises(TooManyValues):
        parse(data)


@pytest.mark.parametrize("data", [body("x", [[]] * (VALUES // 2 - 3)), body("x", [TEXT])], ids=["arrays", "text"])
def test_a_long_text_is_one_value(data: bytes) -> None:
    assert parse(data) == Message("x", None, 1)


CALL = Message("tools/call", "größe", 1)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"mcp-method": "tools/call"},
        {"mcp-method": "tools/call", "mcp-name": encode_header_value("größe")},
        {"mcp-session-id": "a"},
    ],
)
def test_headers_that_are_there_agree(headers: dict[str, str]) -> None:
    check(CALL, Headers(headers))


@pytest.mark.parametrize(
    "raw",
    [
        [(b"mcp-method", b"tools/list")],
        [(b"mcp-method", b"")],
        [(b"mcp-method", b"Tools/Call")],
        [(b"mcp-name", b"grosse")],
        [(b"mcp-name", b"")],
        [(b"mcp-name", b"=?base64?!?=")],
        [(b"mcp-method", b"tools/call"), (b"mcp-method", b"tools/list")],
        [(b"mcp-session-id", b"a"), (b"mcp-session-id", b"b")],
        [(b"mcp-session-id", b"caf\xe9")],
        [(b"mcp-param-city", b"K\xc3\xb6ln")],
        [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-protocol-version", b"2025-11-25")],
    ],
)
def test_headers_that_disagree_or_are_there_twice_are_refused(raw: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Malformed) as caught:
        check(CALL, Headers(raw=raw))
    assert (caught.value.code, caught.value.id) == (HEADER_MISMATCH, 1)


def test_a_name_in_the_head_of_what_names_nothing_is_refused() -> None:
    with pytest.raises(Malformed):
        check(Message("tools/list", None, 1), Headers({"mcp-name": "send"}))


@pytest.mark.parametrize("request_id", ["a", "\U0001f600"])
def test_what_is_kept_of_a_body_is_short(request_id: str) -> None:
    assert parse(body("ping", request_id=request_id * MOST_ID)).id == request_id * MOST_ID
    with pytest.raises(Malformed, match="an id may have 1024 characters") as caught:
        parse(body("ping", request_id=request_id * (MOST_ID + 1)))
    assert (caught.value.code, caught.value.id) == (INVALID_REQUEST, None)
    with pytest.raises(Malformed, match="a method may have 1024 characters") as caught:
        parse(body(request_id * (MOST_ID + 1)))
    assert caught.value.id == 1


@pytest.mark.parametrize(
    "types",
    [
        [],
        ["application/json"],
        ["application/json; charset=utf-8"],
        ['Application/JSON ;Charset="UTF-8"'],
        ["application/json; x=1"],
        ["application/json; charset=utf-8;"],
        ["application/json; x=1; charset=utf-8; y=2"],
    ],
)
def test_a_body_may_be_said_to_be_utf_8(types: list[str]) -> None:
    check_encoding(Headers(raw=[(b"content-type", value.encode()) for value in types]), 1)


@pytest.mark.parametrize(
    "types",
    [
        ["application/json; charset=utf-7"],
        ["application/json; charset=utf-16"],
        ['application/json; CHARSET="utf-7"'],
        ["application/json; charset*=us-ascii''utf-7"],
        ["application/json; charset=utf-8; charset=utf-7"],
        ["application/json; x=1; charset=utf-7"],
        ["application/json; xcharset=utf-7; charset=utf-8"],
        ['application/json; x=";charset=utf-8;charset=utf-7"'],
        ["application/json; charset=utf-8, application/json; charset=utf-7"],
        ["application/json", "application/json"],
    ],
)
def test_a_body_in_another_encoding_is_refused(types: list[str]) -> None:
    with pytest.raises(Malformed, match="no encoding but UTF-8"):
        check_encoding(Headers(raw=[(b"content-type", value.encode()) for value in types]), 1)
