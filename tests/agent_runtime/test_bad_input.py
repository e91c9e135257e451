"""A real agent under requests that no client would send: protocol or tool errors, never a crash, a leak or a growth."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_agent_runtime.calls import arguments as calls_arguments
from pallas_agent_runtime.calls import delegation
from pallas_service.http import protocol
from tests import examples

pytestmark = pytest.mark.slow

SECRET = "sk-canary-51c0"
TOKEN = "ui-token-0123456789abcdef"
MAX_BODY = 1 << 20
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CODES = {-32700, -32600, -32601, -32602, *range(-32049, -32019)}
"""Parse error, invalid request, unknown method, invalid params, and the range that MCP gives codes of its own in;
not -32603: an internal error is one of ours."""

hostile = examples.hostile(80, fuzz=1_000)


def nested(depth: int) -> Any:
    value: Any = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


ODD = st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "\u202egnp.exe",
        "\u2066\u2069",
        "\ud800",
        "\udfff\ud800",
        "\ufeff",
        "\U0010ffff",
        "é" * 3,
        "../../etc/passwd",
        "{{7*7}}",
        "${HOME}",
        "%00",
        "\r\nx: y",
        "\x1b[2J",
        "A" * 200_000,
        "' OR 1=1",
    ]
)
TEXT = st.one_of(ODD, st.text(max_size=40))
NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([10**400, -(2**63)])
)
ATOMS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXT)
VALUES = st.one_of(
    st.recursive(ATOMS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4))),
    st.sampled_from([40, 400, 20_000]).map(nested),
)
METHODS = st.one_of(
    st.sampled_from(
        [
            "tools/call",
            "tools/list",
            "prompts/get",
            "prompts/list",
            "server/discover",
            "initialize",
            "ping",
            "resources/read",
            "completion/complete",
            "logging/setLevel",
            "notifications/cancelled",
            "rpc.discover",
        ]
    ),
    TEXT,
)
NAMES = st.one_of(st.sampled_from(["scout", "send_message", "get_health", "scout_history"]), VALUES)
ARGUMENTS = st.one_of(
    VALUES,
    st.fixed_dictionaries({}, optional={"message": VALUES, "images": VALUES, "session_id": VALUES, "more": VALUES}),
    st.builds(
        lambda data, kind: {"message": "look", "images": [{"data": data, "mime_type": kind}]},
        VALUES,
        st.one_of(VALUES, st.just("image/png")),
    ),
)
CALLS = st.fixed_dictionaries({"name": NAMES}, optional={"arguments": ARGUMENTS, "more": VALUES})
QUESTIONS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["scout", "send_message"]),
        "arguments": st.fixed_dictionaries(
            {"message": st.just("look") | VALUES}, optional={"images": VALUES, "session_id": VALUES}
        ),
    }
)
"""Calls that are read to the end: of CALLS one in fifty has a value in the place of an argument."""
TASKS = st.fixed_dictionaries(
    {},
    optional={f"io.pallas-kit/{key}": VALUES for key in ("task", "path", "depth", "seconds")}
    | {"progressToken": VALUES, "traceparent": VALUES, "tracestate": VALUES, "baggage": VALUES},
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "mcp-protocol-version",
            "mcp-method",
            "mcp-name",
            "mcp-session-id",
            "accept",
            "content-type",
            "last-event-id",
            "authorization",
            "traceparent",
            "x-forwarded-host",
            "content-encoding",
        ]
    ),
    st.one_of(
        st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
        st.sampled_from([MODERN, "1900-01-01", "*/*", "application/json", "text/plain", "Bearer x", "=?base64?4pij?="]),
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def agent(toolkit: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = toolkit.write_files(
        tmp_path_factory.mktemp("hostile"),
        {
            "agents.yaml": {
                "name": "hostile",
                "registry_port": toolkit.free_port(),
                "agents": {
                    "scout": {"card": "scout.yaml", "port": toolkit.free_port()},
                    "guarded": {
                        "card": "guarded.yaml",
                        "port": toolkit.free_port(),
                        "access": {"tokens": {"ui": {"file": "secrets/ui"}}},
                    },
                },
            },
            "guarded.yaml": {"type": "agent", "name": "guarded", "instruction": "x"},
            "secrets/ui": TOKEN,
            "scout.yaml": {"type": "agent", "name": "scout", "instruction": "x"},
            "fastagent.config.yaml": {"default_model": "passthrough"},
            ".env": f"OPENAI_API_KEY={SECRET}\n",
        },
    )
    with (
        toolkit.running_commands(folder, "scout", PALLAS_MAX_BODY=str(MAX_BODY)) as started,
        toolkit.running(folder, "guarded", PALLAS_MAX_BODY=str(MAX_BODY)) as forked,
    ):
        started.running |= forked.running  # of memory only the first is asked
        yield started


class Wire:
    """Requests of one era, by hand."""

    def __init__(self, url: str, era: str, http: httpx2.Client) -> None:
        self._url, self._http, self.modern = url, http, era == MODERN
        self._headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if not self.modern:
            about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
            opened = self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
            self._headers |= {
                "mcp-session-id": opened.headers["mcp-session-id"],
                "mcp-protocol-version": "2025-11-25",
            }
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: Any, headers: dict[str, str] | None = None) -> httpx2.Response:
        content = message if isinstance(message, bytes) else written(message)
        return self._http.post(self._url, content=content, headers={**self._headers, **(headers or {})})

    def request(self, method: Any, params: Any, meta: Any, headers: dict[str, str]) -> httpx2.Response:
        """A request whose envelope is right, as far as its parts let it be."""
        if isinstance(params, dict):
            params = {**params, "_meta": {**(META if self.modern else {}), **meta}}
        own = {"mcp-protocol-version": MODERN, "mcp-method": fit(method)} if self.modern else {}
        if self.modern and isinstance(params, dict) and isinstance(params.get("name"), str):
            own["mcp-name"] = fit(params["name"])
        return self.send({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, own | headers)

    def close(self) -> None:
        if not self.modern:
            self._http.delete(self._url, headers=self._headers)


def fit(value: Any) -> str:
    """`value` as far as it can be a header at all."""
    return re.sub(r"[^!-~]", "", value)[:200] if isinstance(value, str) else "x"


def written(value: Any) -> bytes:
    """JSON; what is too deep for Python's own writer by hand, lone surrogates as escapes."""
    try:
        return json.dumps(value).encode()
    except RecursionError:
        return b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' + b'{"a":[' * 9_000 + b"]}" * 9_000 + b"}"


@pytest.fixture(params=[MODERN, "legacy"])
def wire(request: pytest.FixtureRequest, agent: Any) -> Iterator[Wire]:
    with httpx2.Client(timeout=30) as http:
        opened = Wire(agent.url("scout"), request.param, http)
        yield opened
        opened.close()


def replies(response: httpx2.Response) -> list[Any]:
    """The messages of an answer, JSON or an event stream; none where it is plain text."""
    kind = response.headers.get("content-type", "")
    if kind.startswith("application/json"):
        found = response.json()
        return found if isinstance(found, list) else [found]
    if kind.startswith("text/event-stream"):
        lines = re.split("\r\n|\r|\n", response.text)  # of an event stream; Python knows more ends of a line
        return [json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()]
    return []


def is_civil(response: httpx2.Response, folder: Path) -> None:
    """Neither a crash nor a leak; an error has a code of the specification."""
    assert response.status_code < 500, response.text
    for leak in ("Traceback", "site-packages", 'File "', '.py"', "pydantic", str(folder), SECRET):
        assert leak not in response.text, response.text[:2000]
    for message in replies(response):
        if "error" in message:
            assert message["error"]["code"] in CODES, message
            assert len(message["error"]["message"]) < 2000


@pytest.mark.fuzz
@hostile
@given(method=METHODS, params=st.one_of(VALUES, CALLS), meta=TASKS, headers=HEADERS)
def test_any_request(agent: Any, wire: Wire, method: Any, params: Any, meta: Any, headers: dict[str, str]) -> None:
    is_civil(wire.request(method, params, meta, headers), agent.folder)


@pytest.mark.fuzz
@hostile
@given(call=CALLS | QUESTIONS, meta=st.just({}) | TASKS)
def test_any_call_with_the_right_headers(agent: Any, wire: Wire, call: Any, meta: Any) -> None:
    response = wire.request("tools/call", call, meta, {})
    is_civil(response, agent.folder)
    for message in replies(response):
        if "result" in message and call.get("name") in ("scout", "send_message"):
            wrong = refused(call.get("arguments") or {}, meta)
            told = message["result"]["content"][0]["text"]
            assert message["result"].get("isError", False) is bool(wrong), (wrong, told)
            assert not wrong or told == wrong


def refused(arguments: dict[str, Any], meta: dict[str, Any]) -> str:
    """What the agent has to say to a call that it must not answer; empty for all others."""
    try:
        delegation.arrived(meta, "hostile/scout")
        calls_arguments.parse(arguments, MAX_BODY)
    except (delegation.BadTask, calls_arguments.BadArgument) as error:
        return str(error)
    return ""


@pytest.mark.fuzz
@hostile
@given(message=st.one_of(VALUES, st.lists(CALLS, max_size=3), st.binary(max_size=200)), headers=HEADERS)
def test_any_body(agent: Any, wire: Wire, message: Any, headers: dict[str, str]) -> None:
    is_civil(wire.send(message, headers), agent.folder)


LONG = "a" * 70_000
LINES = st.sampled_from(
    """POST /mcp HTTP/1.1|GET /mcp HTTP/1.1|GET /livez HTTP/1.1|POST /mcp HTTP/1.0|POST /mcp HTTP/9.9
POST  /mcp  HTTP/1.1|GET http://x/livez HTTP/1.1|OPTIONS * HTTP/1.1|CONNECT x:1 HTTP/1.1|PRI * HTTP/2.0
GET /livez|POST /LONG HTTP/1.1|\x16\x03\x01|GET /mcp/../livez HTTP/1.1|GET \xff HTTP/1.1""".replace("\n", "|").split(
        "|"
    )
)
FIELDS = st.lists(
    st.sampled_from(
        """content-length: 5|content-length: 50|content-length: -1|content-length: 5, 5|content-length: 0x5|te: trailers
content-length: LONG|transfer-encoding: chunked|transfer-encoding: chunked, gzip|transfer-encoding : chunked|host: evil
Transfer-Encoding: \x0bchunked|expect: 100-continue|connection: close|connection: upgrade|upgrade: websocket
upgrade: h2c| folded: x|LONG|x: a\0b|x: \xff|: none|host:|content-type: application/json|accept: */*
content-encoding: gzip|mcp-session-id: x|mcp-protocol-version: 2099-01-01|cookie: LONG""".replace("\n", "|").split("|")
    ),
    max_size=5,
)
PIPELINED = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CONTENTS = st.sampled_from(
    [b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhel", b"-1\r\n", b"fffffffffffffffff\r\nx"]
) | (st.sampled_from([b"5;x=y\r\nhello\r\n0\r\n", b"0\r\n\r\n" + PIPELINED, PIPELINED * 50, b"\0" * 500]))


@pytest.mark.fuzz
@hostile
@given(line=LINES, fields=FIELDS, content=CONTENTS)
def test_any_bytes(agent: Any, line: str, fields: list[str], content: bytes) -> None:
    """Of a client that sends no more afterwards: what it gets is HTTP and civil, or the connection ends."""
    head = "\r\n".join([line, f"host: 127.0.0.1:{agent.port('scout')}", *fields, "", ""]).replace("LONG", LONG)
    reply = b""
    with socket.create_connection(("127.0.0.1", agent.port("scout")), 30) as connection, suppress(ConnectionError):
        connection.sendall(head.encode("latin-1") + content)
        with suppress(OSError):  # ENOTCONN is no ConnectionError: the agent has hung up already
            connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            reply += piece
    assert not reply or reply.startswith(b"HTTP/1.1 "), reply[:200]
    assert not re.search(rb"^HTTP/1.1 5(?!05)", reply), reply[:500]
    assert not any(leak in reply for leak in (b"Traceback", b"site-packages", SECRET.encode()))


CREDENTIALS = ["", "Bearer", "Bearer \xff\xfe", "Basic Og==", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
CREDENTIALS += ["Bearer a.b.c", "Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer " + "." * 60_000, f"Bearer {TOKEN}, {TOKEN}"]


@pytest.mark.parametrize("shown", CREDENTIALS)
def test_no_odd_credential_opens_a_protected_agent(agent: Any, shown: str) -> None:
    with httpx2.Client(timeout=30) as http:
        headers = {"authorization": shown.encode("latin-1"), "accept": "application/json, text/event-stream"}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        response = http.post(agent.url("guarded"), json=message, headers=headers)
        assert response.status_code == 401
        assert not any(leak in response.text for leak in ("Traceback", "site-packages", str(agent.folder), TOKEN))
        headers["authorization"] = f"Bearer {TOKEN}".encode()
        assert http.post(agent.url("guarded"), json=message, headers=headers).status_code != 401


@pytest.mark.parametrize("name", ["scout", "guarded"])
def test_headers_beyond_the_limit_are_refused(agent: Any, name: str) -> None:
    with httpx2.Client(timeout=30) as http:
        response = http.get(agent.url(name), headers={"authorization": "Bearer " + "A" * protocol.HEAD})
        assert response.status_code == 431
        assert http.get(agent.url(name, "/livez")).status_code == 200


@pytest.mark.parametrize("name", ["scout", "guarded"])
def test_nothing_of_it_was_a_crash(agent: Any, name: str) -> None:
    """Of the tests before: what our own code did not foresee is logged as an error."""
    assert agent.running[name].poll() is None
    lines = [json.loads(line) for line in agent.log(name).read_text().splitlines()]
    assert [line for line in lines if line["level"] in ("error", "critical")] == []


def resident(agent: Any) -> int:
    """Bytes of the process in memory."""
    status = Path(f"/proc/{agent.running['scout'].pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)[1]) << 10  # type: ignore[index]


def test_memory_returns_to_where_it_was(agent: Any) -> None:
    """Large, deep and wrong requests again and again; what they say is kept in no conversation."""
    calls = [
        ("tools/call", {"name": "scout", "arguments": {"message": "A" * 900_000}}),
        ("tools/call", {"name": "scout", "arguments": {"message": "A" * 1_100_000}}),
        ("tools/call", {"name": "scout", "arguments": {"message": "x", "images": [{"data": "A" * 800_000}]}}),
        ("tools/call", {"name": "A" * 100_000, "arguments": nested(400)}),
        ("prompts/get", {"name": "scout_history", "arguments": {"session_id": "A" * 100_000}}),
        ("A" * 100_000, {"a": nested(400)}),
    ]

    def around() -> None:
        for era in (MODERN, "legacy"):
            with httpx2.Client(timeout=30) as http:
                wire = Wire(agent.url("scout"), era, http)
                for method, params in calls * 4 if wire.modern else calls[1:] * 4:  # a session keeps what was right
                    is_civil(wire.request(method, params, {}, {}), agent.folder)
                wire.send(b"[" * 900_000)
                wire.close()

    for _ in range(3):
        around()
    before = resident(agent)
    for _ in range(8):
        around()
    assert resident(agent) - before < 24 << 20  # 400 requests of half a megabyte
