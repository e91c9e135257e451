"""One parser and one table: a body is JSON or not, and its method says who answers."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_registry.mcp import jsonrpc
from pallas_registry.mcp.jsonrpc import Request, Response


async def row(request: Request) -> Response:
    return Response(200, {"row": request.message["method"], "header": request.headers.get("accept")})


async def default(request: Request) -> Response:
    return Response(404, {"default": request.message})


async def ask(body: bytes) -> tuple[int, dict[str, Any] | None]:
    response = await jsonrpc.dispatch({"accept": "x"}, body, methods={"a/b": row}, default=default)
    return response.status, response.message


async def test_a_method_of_the_table_is_answered_by_its_row_whatever_else_is_in_the_body() -> None:
    assert await ask(b'{"method": "a/b", "id": [], "params": 7}') == (200, {"row": "a/b", "header": "x"})


@pytest.mark.parametrize("message", ["[]", "7", "null", '{"method": ["a/b"]}', '{"method": "A/B"}', "{}"])
async def test_every_other_json_is_for_the_default(message: str) -> None:
    status, reply = await ask(message.encode())
    assert (status, list(reply or {})) == (404, ["default"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"method":"a/b"',
        b"[" * 100_000,
        b'{"method":"a/b","a":NaN}',
        b'{"method":"a/b","a":"\\ud800"}',
    ],
)
async def test_what_is_no_json_or_could_not_be_answered_is_a_parse_error(body: bytes) -> None:
    assert await ask(body) == (400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}})
