"""The JSON-RPC message in a body, as far as the gateway decides by it; what parsers could read differently is none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    decode_header_value,
)
from mcp_types import HEADER_MISMATCH, INVALID_REQUEST, PARSE_ERROR
from starlette.datastructures import Headers

from pallas_contract.json_values import has_more_values
from pallas_contract.names import META_MODEL
from pallas_gateway.policy.keys import folded

SESSION_HEADER = "mcp-session-id"
MOST_VALUES = 100_000
"""Arrays, objects and members of a body: some 100 bytes of memory each, whose text has one or two."""
MOST_ID = 1 << 10
"""Characters of an id and of a method: both are kept for as long as the call is open."""
_SHOWN = 80
"""Characters of a header's name that are shown."""
_CALL = "tools/call"
_CALLS = frozenset(
    {_CALL, "completion/complete", "prompts/get", "resources/read", "resources/subscribe", "subscriptions/listen"}
)
"""Methods that may have to be confirmed."""
_TASK_KEY = "taskId"
"""Parameter that `Mcp-Name` mirrors in the methods `tasks/...` (SEP-2663)."""
_KEYS = {folded(key): key for key in ("jsonrpc", "id", "method", "params", "result", "error")}
_PARAMS = {folded(key): key for key in ("name", "uri", _TASK_KEY, "arguments", "_meta")}
"""Keys of a message and of its parameters that are decided by, each by what it has in common with other spellings."""
_EXACT = frozenset({*_KEYS.values(), *_PARAMS.values()})
_UTF_8 = re.compile(r';\s*charset=("?)utf-?8\1\s*(?=;|$)', re.IGNORECASE | re.ASCII)
"""The one way to name an encoding: a server may heed any that it knows, and read another text than was judged."""
_PLAIN = ["application/json"]
_METHOD, _NAME = MCP_METHOD_HEADER.encode(), MCP_NAME_HEADER.encode()
_SINGLE = frozenset({MCP_PROTOCOL_VERSION_HEADER.encode(), _METHOD, _NAME, SESSION_HEADER.encode()})


@dataclass(slots=True)
class Message:
    """One message of a client. `method` is empty for its answer to a question of the agent.

    `name` is that of the tool, prompt or task, or the URI of the resource; `id` that of a request.
    """

    method: str = ""
    name: str | None = None
    id: str | int | None = None
    arguments: Any = field(default=None, repr=False)
    """Those of a tool or prompt, as they were written."""
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What else the parameters of a call say of what is to be done: answers by which it goes on, the model, and of what
    is no tool all that it names."""


class Malformed(Exception):
    """A body or head that is not forwarded; `code` is JSON-RPC's, `id` that of the request where it could be read."""

    def __init__(self, code: int, text: str, request_id: str | int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.id = request_id


class TooManyValues(Exception):
    """A body with more than `MOST_VALUES` values."""


def parse(body: bytes) -> Message:
    """Return what a body of UTF-8 JSON asks for.

    Raises:
        Malformed: it is no JSON that every parser reads alike, or no JSON-RPC message.
        TooManyValues: it is too large as objects, whatever it is as text.
    """
    if has_more_values(body, MOST_VALUES):
        raise TooManyValues
    try:
        data = _READER.decode(body.decode("utf-8"))
    except _Ambiguous as error:
        raise Malformed(PARSE_ERROR, f"Parse error: {error}") from None
    except (ValueError, RecursionError):
        raise Malformed(PARSE_ERROR, "Parse error: the body is not JSON in UTF-8") from None
    if not isinstance(data, dict):
        raise Malformed(INVALID_REQUEST, "Invalid request: the body must be one JSON-RPC message")
    _check_keys(data, _KEYS)
    request_id = data.get("id")
    if isinstance(request_id, str) and len(request_id) > MOST_ID:
        raise Malformed(INVALID_REQUEST, f"Invalid request: an id may have {MOST_ID} characters")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        request_id = None
    method = data.get("method", "")
    if not isinstance(method, str) or not (method or "result" in data or "error" in data):
        raise Malformed(INVALID_REQUEST, "Invalid request: the body is no JSON-RPC message", request_id)
    if len(method) > MOST_ID:
        raise Malformed(INVALID_REQUEST, f"Invalid request: a method may have {MOST_ID} characters", request_id)
    params = data.get("params")
    _check_keys(params, _PARAMS, request_id)
    arguments = params.get("arguments") if isinstance(params, dict) else None
    if method == _CALL and arguments is not None and not isinstance(arguments, dict):
        # judged and confirmed as none, they would reach a server that reads them
        raise Malformed(INVALID_REQUEST, "Invalid request: arguments must be an object", request_id)
    more = _more(params, is_tool=method == _CALL) if isinstance(params, dict) and method in _CALLS else {}
    return Message(method, _name(method, params), request_id if method else None, arguments, more)


def check_head(headers: Headers, request_id: str | int | None = None) -> None:
    """Refuse MCP's headers that two programs could read differently; with `request_id` where there is one.

    Raises:
        Malformed: one is there twice, or is not ASCII, which the agent would get in another encoding.
    """
    _routing(headers, request_id)


def check(message: Message, headers: Headers) -> None:
    """Compare the routing headers that are there with `message`: something in front may have decided by them.

    Raises:
        Malformed: one disagrees, or `check_head` refuses it.
    """
    routing = _routing(headers, message.id)
    if routing.get(_METHOD, message.method) != message.method:
        raise Malformed(HEADER_MISMATCH, f"{MCP_METHOD_HEADER} header does not match the body's method", message.id)
    if (written := routing.get(_NAME)) is not None and decode_header_value(written) != message.name:
        raise Malformed(HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match the body", message.id)


def check_encoding(headers: Headers, request_id: str | int | None) -> None:
    """Refuse a body that is said to have another encoding than that in which it was read.

    Raises:
        Malformed: it is.
    """
    types = headers.getlist("content-type")
    if types == _PLAIN:  # of all but a few: each call pays for this look
        return
    # parameters beside it are nobody's harm, an empty one neither (RFC 9110, 5.6.6)
    if len(types) > 1 or "charset" in _UTF_8.sub("", "".join(types), count=1).lower():
        text = "Invalid request: Content-Type may be there once, and name no encoding but UTF-8"
        raise Malformed(INVALID_REQUEST, text, request_id)


def _routing(headers: Headers, request_id: str | int | None) -> dict[bytes, str]:
    """Return MCP's headers, of which those that decide are there once."""
    written = [(name, value) for name, value in headers.raw if name.startswith(b"mcp-")]
    routing: dict[bytes, str] = {}
    for name, value in written:
        if name in routing and name in _SINGLE:
            raise Malformed(HEADER_MISMATCH, f"{name.decode()} header is there twice", request_id)
        routing[name] = value.decode("latin-1")
    for name, value in written:
        if not value.isascii():
            shown = name.decode("latin-1")[:_SHOWN]
            raise Malformed(HEADER_MISMATCH, f"{shown} header is not ASCII: encode it as MCP says", request_id)
    return routing


def _check_keys(value: Any, known: Mapping[str, str], request_id: str | int | None = None) -> None:
    """Refuse an object with a key of MCP in another spelling: some servers would read it in the place of that one."""
    if not isinstance(value, dict) or _EXACT.issuperset(value):  # as good as all: each call pays for this look
        return
    for key in value.keys() - _EXACT:
        if meant := known.get(folded(key)):
            raise Malformed(INVALID_REQUEST, f"Invalid request: `{meant}` is there in another spelling", request_id)


def _name(method: str, params: Any) -> str | None:
    key = _TASK_KEY if method.startswith("tasks/") else NAME_BEARING_METHODS.get(method)
    name = params.get(key) if isinstance(params, dict) and key else None
    return name if isinstance(name, str) else None


def _more(params: Mapping[str, Any], *, is_tool: bool) -> dict[str, Any]:
    """Return the parameters of a call beside its arguments, and the name of a tool.

    Of `_meta` that is the model alone: the rest is about a message (progress, traces, ids) and differs in each.
    """
    known = ("name", "arguments", "_meta") if is_tool else ("arguments", "_meta")
    more = {key: value for key, value in params.items() if key not in known}
    meta = params.get("_meta")
    model = meta.get(META_MODEL) if isinstance(meta, dict) else None
    return more if model is None else {**more, "_meta": {META_MODEL: model}}


class _Ambiguous(ValueError):
    """JSON of which parsers differ in what it means (RFC 8259, section 4)."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Ambiguous("a key is there twice")
    return made


def _no_constant(name: str) -> Any:
    raise _Ambiguous(f"{name} is no JSON")


_READER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
"""Made once: `json.loads` makes one for each call of this form."""
