"""The prober: right, with a reason, for servers of both eras and for those that lie."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import pytest
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server as SdkServer

from pallas_contract.documents import health
from pallas_contract.documents.reason import Reason
from pallas_contract.probe import probe, session
from pallas_contract.probe.probe import LEGACY, MODERN, Result, Target

pytestmark = pytest.mark.usefixtures("patient")
DISCOVERED = {
    "supportedVersions": [MODERN],
    "capabilities": {},
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "research", "version": "1.2.3"}},
}
INITIALIZED = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "serverInfo": {"name": "research", "version": "1.2.3"},
}


def said(text: str, **more: bool) -> dict:
    return {"content": [{"type": "text", "text": text}], **more}


OK = said('{"status": "ok"}')


def methods(server) -> list[str]:
    return [asked.json["method"] if asked.method == "POST" else asked.method for asked in server.asked]


async def test_the_current_era_is_asked_without_a_session(serve, mcp) -> None:
    server = await serve(mcp({"server/discover": DISCOVERED, "tools/call": OK}))
    result = await probe.probe(Target(server.url, deep=True))
    assert (result.state, result.reason.message, result.era) == ("ok", "", MODERN)
    assert (result.name, result.version) == ("research", "1.2.3")
    assert methods(server) == ["server/discover", "tools/call"]
    call = server.asked[1]
    assert call.headers["mcp-protocol-version"] == MODERN
    assert (call.headers["mcp-method"], call.headers["mcp-name"]) == ("tools/call", "get_health")
    assert call.json["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN


async def test_an_earlier_era_is_asked_with_a_session_that_is_closed(serve, mcp) -> None:
    server = await serve(mcp({"initialize": INITIALIZED, "tools/call": OK}, session="s1"))
    result = await probe.probe(Target(server.url, deep=True))
    assert (result.state, result.era, result.name) == ("ok", LEGACY, "research")
    assert methods(server) == ["server/discover", "initialize", "notifications/initialized", "tools/call", "DELETE"]
    assert [asked.headers.get("mcp-session-id") for asked in server.asked] == [None, None, "s1", "s1", "s1"]


async def test_the_known_era_is_asked_first(serve, mcp) -> None:
    server = await serve(mcp({"initialize": INITIALIZED}, session="s1"))
    await probe.probe(Target(server.url), era=LEGACY)
    assert methods(server) == ["initialize", "DELETE"]


@pytest.mark.parametrize("handshake", [404, {}], ids=["unknown", "nothing in it"])
async def test_a_server_that_was_upgraded_is_found_again(serve, mcp, handshake) -> None:
    server = await serve(mcp({"initialize": handshake, "server/discover": DISCOVERED}))
    assert (await probe.probe(Target(server.url), era=LEGACY)).era == MODERN


async def test_answers_may_come_as_events(serve, mcp) -> None:
    server = await serve(mcp({"server/discover": DISCOVERED, "tools/call": OK}, stream=True))
    assert (await probe.probe(Target(server.url, deep=True))).state == "ok"


async def test_discover_without_the_version_is_not_the_current_era(serve, mcp) -> None:
    """A shim in front of an old server may answer anything; only supportedVersions counts."""
    shim = {**DISCOVERED, "supportedVersions": ["2025-06-18"]}
    server = await serve(mcp({"server/discover": shim, "initialize": INITIALIZED}))
    assert (await probe.probe(Target(server.url))).era == LEGACY


async def test_every_request_shows_the_targets_headers_and_takes_both_kinds_of_answers(serve, mcp) -> None:
    server = await serve(mcp({"initialize": INITIALIZED, "tools/call": OK}, session="s1"))
    await probe.probe(Target(server.url, deep=True, headers={"Authorization": "Bearer k"}))
    assert {asked.headers.get("authorization") for asked in server.asked} == {"Bearer k"}
    accepted = {asked.headers["accept"] for asked in server.asked if asked.method == "POST"}
    assert accepted == {"application/json, text/event-stream"}


async def test_a_session_opened_by_a_refused_question_is_closed_too(serve, mcp) -> None:
    """Servers of the 1.x SDK open one for any first request and name it in the refusal."""
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Missing session ID"}}
    server = await serve(mcp({"server/discover": refusal, "initialize": INITIALIZED}, session="s1"))
    await probe.probe(Target(server.url))
    assert methods(server) == ["server/discover", "DELETE", "initialize", "DELETE"]
    assert "mcp-session-id" not in server.asked[2].headers


async def test_a_session_whose_answer_never_ends_is_closed_too(serve) -> None:
    async def endless(asked, writer) -> None:
        if asked.method == "POST" and asked.json["method"] == "initialize":
            writer.write(b"HTTP/1.1 200 OK\r\nmcp-session-id: s1\r\ncontent-type: text/event-stream\r\n\r\n")
            await writer.drain()
            await asyncio.Event().wait()
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")

    server = await serve(endless)
    result = await probe.probe(Target(server.url), timeout=0.2)
    assert (result.state, result.reason.message) == ("error", "no answer in 0.2 s")
    assert methods(server)[-1] == "DELETE"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"], ids=["LF", "CRLF"])
async def test_the_events_of_a_stream_are_read_once_however_small_its_pieces_are(
    serve, monkeypatch, end: bytes
) -> None:
    """Who keeps a stream of many events going byte by byte had the registry read all of them again for each byte."""
    read, events = [], session._events
    monkeypatch.setattr(session, "_events", lambda body: read.append(len(body)) or events(body))
    reply = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"supportedVersions": [MODERN]}}).encode()
    pieces = [b'data: {"a": 1}' + end] * 200 + [b":"] * 200 + [end, b"data: " + reply, end[:1], end[1:]]

    async def slowly(_asked, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        await asyncio.Event().wait()

    server = await serve(slowly)
    assert (await probe.probe(Target(server.url))).state == "ok"
    assert sum(read) <= 2 * sum(map(len, pieces)), "as it comes, and once more as a whole"


STATUSES = [
    (401, "unauthenticated", "Unauthorized", "reachable, needs credentials (HTTP 401)"),
    (403, "unauthenticated", "Unauthorized", "reachable, needs credentials (HTTP 403)"),
    (404, "error", "HttpError", "HTTP 404"),
    (405, "error", "HttpError", "HTTP 405"),
    (421, "error", "MisdirectedRequest", "refuses this Host header (HTTP 421)"),
    (429, "degraded", "TooManyRequests", "asked to slow down (HTTP 429)"),
    (500, "error", "HttpError", "HTTP 500"),
    (502, "error", "HttpError", "HTTP 502"),
    (503, "degraded", "ServiceUnavailable", "cannot answer now (HTTP 503)"),
    (307, "error", "Redirect", "HTTP 307, and redirects are not followed"),
]


@pytest.mark.parametrize(("status", "state", "code", "message"), STATUSES)
@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_status_is_a_finding(serve, answer, status: int, state: str, code: str, message: str, era: str) -> None:
    server = await serve(answer(status, location="http://169.254.169.254/", www_authenticate="Bearer"))
    result = await probe.probe(Target(server.url, deep=True), era=era)
    assert (result.state, result.reason) == (state, Reason(code, message))


def moved(location: str, status: int = 307):
    """A server that answers below /mcp/ and leads there from /mcp, as Starlette's mounts do."""

    async def handler(asked, writer) -> None:
        if asked.path != "/mcp/":
            to = location.format(host=asked.headers["host"])
            writer.write(f"HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n".encode())
            return
        body = json.dumps({"jsonrpc": "2.0", "id": asked.json["id"], "result": DISCOVERED}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    return handler


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("whole", [True, False])
async def test_who_asks_for_it_is_led_to_another_path_of_the_same_origin(serve, status: int, whole: bool) -> None:
    server = await serve(moved("http://{host}/mcp/" if whole else "/mcp/", status))
    result = await probe.probe(Target(server.url, headers={"authorization": "Bearer k"}, follow=True))
    assert (result.state, result.name) == ("ok", "research")
    assert [(asked.path, asked.headers["authorization"]) for asked in server.asked] == [
        ("/mcp", "Bearer k"),
        ("/mcp/", "Bearer k"),
    ]
    assert (await probe.probe(Target(server.url))).reason.code == "Redirect"


@pytest.mark.parametrize(
    ("location", "status", "asked"),
    [
        ("http://127.0.0.1:1/mcp/", 307, 1),
        ("https://127.0.0.1/mcp/", 307, 1),
        ("//elsewhere.example/mcp/", 308, 1),
        ("http://k@127.0.0.1/mcp/", 308, 1),
        ("http://[/mcp/", 307, 1),
        ("/mcp/", 302, 1),  # may become a GET
        ("/elsewhere", 307, 4),  # without end
    ],
)
async def test_no_redirect_is_followed_to_elsewhere_or_for_ever(serve, location: str, status: int, asked: int) -> None:
    server = await serve(moved(location, status))
    result = await probe.probe(Target(server.url, headers={"authorization": "Bearer k"}, follow=True))
    message = f"HTTP {status}, and only redirects within its origin are followed"
    assert (result.state, result.reason) == ("error", Reason("Redirect", message))
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (400, ["initialize", "server/discover", "initialize"]),
        (404, ["initialize", "server/discover", "initialize"]),
        (200, ["initialize", "server/discover", "initialize"]),
        (401, ["initialize"]),
        (421, ["initialize"]),
        (429, ["initialize"]),
        (500, ["initialize"]),
        (503, ["initialize"]),
        (307, ["initialize"]),
    ],
)
async def test_only_an_answer_that_knows_no_initialize_is_a_question_of_the_era(serve, answer, status, asked) -> None:
    server = await serve(answer(status))
    await probe.probe(Target(server.url), era=LEGACY)
    assert methods(server) == asked


NOON = "Thu, 12 Mar 2026 12:00:00 GMT"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "date", "seconds"),
    [
        ("7", "", 7.0),
        ("Thu, 12 Mar 2026 12:00:09 GMT", NOON, 9.0),
        ("Thu, 12 Mar 2026 11:00:00 GMT", NOON, 0.0),
        ("Thu, 12 Mar 2026 12:00:09 GMT", "", 0.0),
        ("Thu, 12 Mar 2026 12:00:09 -0000", NOON, 0.0),
        ("soon", NOON, 0.0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", NOON, 0.0),
        ("Thu, 12 Mar 2026 12:00:09 +99999999999999999999", NOON, 0.0),
        ("Thu, 12 Mar 2026 12:00:09 GMT", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0.0),
        ("-3", "", 0.0),
        ("²", "", 0.0),
        ("9" * 5000, "", 999_999_999.0),
    ],
)
async def test_how_long_it_asks_to_be_left_alone(serve, answer, status: int, said: str, date: str, seconds) -> None:
    server = await serve(answer(status, retry_after=said, date=date))
    result = await probe.probe(Target(server.url, deep=True, tools=True))
    assert (result.state, result.status, result.wait) == ("degraded", status, seconds)
    assert result.reachable == (status == 429)
    assert len(server.asked) == 1, "who asks for peace is not asked for tools"


async def test_a_server_that_answers_get_with_405_is_well(serve, mcp) -> None:
    """The peers' commonest lie: a GET to an MCP endpoint that offers no stream says nothing about its health."""
    server = await serve(mcp({"server/discover": DISCOVERED, "tools/call": OK}))
    assert (await probe.probe(Target(server.url, deep=True))).state == "ok"
    assert {asked.method for asked in server.asked} == {"POST"}


LIES = {
    "HTML": (b"<html>It works!</html>", "text/html"),
    "empty": (b"", "application/json"),
    "not JSON": (b'{"jsonrpc": "2.0", ', "application/json"),
    "a list": (b"[]", "application/json"),
    "deeply nested": (b"[" * 60000, "application/json"),
    "wrong id": (json.dumps({"jsonrpc": "2.0", "id": 77, "result": INITIALIZED}).encode(), "application/json"),
    "no id": (json.dumps({"jsonrpc": "2.0", "id": None, "result": INITIALIZED}).encode(), "application/json"),
    "neither result nor error": (b'{"jsonrpc": "2.0", "id": 1}', "application/json"),
    "event without data": (b"event: message\n\n", "text/event-stream"),
    "not UTF-8": (b'{"\xff\xfe": 1}', "application/json"),
}


@pytest.mark.parametrize(("body", "kind"), LIES.values(), ids=LIES)
@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_http_200_alone_is_not_health(serve, answer, body: bytes, kind: str, era: str) -> None:
    server = await serve(answer(200, body, content_type=kind))
    result = await probe.probe(Target(server.url), era=era)
    assert (result.state, result.reason) == ("error", Reason("NotMcp", "not an MCP answer"))


async def test_an_unknown_protocol_version_is_not_trusted(serve, mcp) -> None:
    server = await serve(mcp({"initialize": {**INITIALIZED, "protocolVersion": "banana"}, "tools/call": OK}))
    result = await probe.probe(Target(server.url, deep=True))
    reason = Reason("UnknownProtocolVersion", "answers with protocol version 'banana'")
    assert (result.state, result.reason) == ("degraded", reason)


async def test_an_rpc_error_is_named(serve, mcp) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "boom"}}
    server = await serve(mcp({"initialize": error}))
    assert (await probe.probe(Target(server.url))).reason == Reason("JsonRpcError", "JSON-RPC error -32603")


NO_TOOL = Reason("NoHealthTool", "reachable; no get_health tool")
INVALID = Reason("InvalidHealth", "get_health gave no valid answer")
LONG = f"Unreachable: {', '.join(['neo4j'] * 80)}, research_deep"
"""Cut to 500 characters, it would end in the middle of a name."""
HEALTH = {
    "ok": (OK, "ok", Reason()),
    "ok with a remark": (said('{"status": "ok", "message": "busy"}'), "ok", Reason("Ok", "busy")),
    "degraded": (
        said('{"status": "degraded", "message": "neo4j slow"}'),
        "degraded",
        Reason("SelfReported", "neo4j slow"),
    ),
    "without a server": (
        said('{"status": "degraded", "message": "Unreachable: neo4j, argos; LLM: openai: no API key"}'),
        "degraded",
        Reason("Unreachable", "Unreachable: neo4j, argos; LLM: openai: no API key", ("neo4j", "argos")),
    ),
    "error": (said('{"status": "error", "message": "no model"}'), "error", Reason("SelfReported", "no model")),
    "no message": (said('{"status": "error"}'), "error", Reason("SelfReported", "get_health says error")),
    "long message": (
        said(json.dumps({"status": "degraded", "message": "x" * 900})),
        "degraded",
        Reason("SelfReported", "x" * 500),
    ),
    "long list": (
        said(json.dumps({"status": "degraded", "message": LONG})),
        "degraded",
        Reason("Unreachable", LONG[:500], ("neo4j", "research_deep")),
    ),
    "half a surrogate": (
        said('{"status": "degraded", "message": "a\\ud800"}'),
        "degraded",
        Reason("SelfReported", "a?"),
    ),
    "unknown status": (said('{"status": "fine"}'), "degraded", INVALID),
    "not JSON": (said("I am well"), "degraded", INVALID),
    "nested": (said("[" * 50000), "degraded", INVALID),
    "no content": ({"content": []}, "degraded", INVALID),
    "failed": (
        said("division by zero", isError=True),
        "degraded",
        Reason("HealthToolFailed", "get_health failed: division by zero"),
    ),
    "failed, with like words": (
        said("LLM: openai: model 'bad-model' not found", isError=True),
        "degraded",
        Reason("HealthToolFailed", "get_health failed: LLM: openai: model 'bad-model' not found"),
    ),
    "tools only, as result": (said("Unknown tool: get_health", isError=True), "ok", NO_TOOL),
    "tools only, in other words": (said("Tool 'get_health' not found", isError=True), "ok", NO_TOOL),
    "tools only, as error": ({"jsonrpc": "2.0", "id": None, "error": {"code": -32602}}, "ok", NO_TOOL),
    "no tools at all": ({"jsonrpc": "2.0", "id": None, "error": {"code": -32601}}, "ok", NO_TOOL),
}


@pytest.mark.parametrize(("reply", "state", "reason"), HEALTH.values(), ids=HEALTH)
async def test_what_the_agent_says_of_itself(serve, mcp, reply: dict, state: str, reason: Reason) -> None:
    server = await serve(mcp({"server/discover": DISCOVERED, "tools/call": reply}))
    result = await probe.probe(Target(server.url, deep=True))
    assert (result.state, result.reason) == (state, reason)
    result.reason.message.encode()


@pytest.mark.parametrize("step", ["server/discover", "tools/call"])
async def test_a_probe_ends_at_its_deadline(serve, mcp, step: str) -> None:
    well = mcp({"server/discover": DISCOVERED, "tools/call": OK})

    async def frozen(asked, writer) -> None:
        if asked.json["method"] == step:
            await asyncio.Event().wait()
        await well(asked, writer)

    server = await serve(frozen)
    result = await probe.probe(Target(server.url, deep=True), timeout=0.1)
    assert (result.state, result.reason) == ("error", Reason("NoAnswer", "no answer in 0.1 s"))


async def test_latency_is_read_from_the_clock_given(serve, mcp) -> None:
    server = await serve(mcp({"server/discover": DISCOVERED}))
    times = iter([10.0, 10.25])
    assert (await probe.probe(Target(server.url), clock=lambda: next(times))).latency == 0.25


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://localhost:1/mcp", Reason("ConnectionRefused", "connection refused")),
        ("ftp://research/", Reason("InvalidRequest", "not an http(s) URL: ftp://research")),
    ],
)
async def test_what_cannot_be_asked_is_a_finding_too(url: str, reason: Reason) -> None:
    result = await probe.probe(Target(url, address="127.0.0.1"))
    assert result == Result("error", reason, latency=result.latency)


async def test_a_header_that_cannot_be_sent_is_a_finding_too(serve, answer) -> None:
    server = await serve(answer(200))
    result = await probe.probe(Target(server.url, headers={"authorization": "a\nb"}))
    assert result.state == "error"


# ---- real servers, made with the SDK ----------------------------------------------------------------------------


async def _list_tools(_context, _params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=health.TOOL, input_schema={"type": "object"})])


async def _call_tool(_context, params) -> types.CallToolResult:
    assert params.name == health.TOOL
    return types.CallToolResult(content=[types.TextContent(type="text", text='{"status": "ok"}')])


def _legacy_only(app):
    """The SDK's server as it was before 2026-07-28: it refuses a version it has not heard of."""

    async def old(scope, receive, send) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"mcp-protocol-version") == MODERN.encode():
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    return old


@contextlib.asynccontextmanager
async def _sdk(*, legacy_only: bool):
    sdk = SdkServer("research", version="1.0", on_list_tools=_list_tools, on_call_tool=_call_tool)
    app = sdk.streamable_http_app()
    config = uvicorn.Config(_legacy_only(app) if legacy_only else app, log_config=None, ws="none", lifespan="on")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server._serve([listener]))
        port = listener.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/mcp", sdk.session_manager
        finally:
            server.should_exit = True
            await serving


@pytest.mark.parametrize(("legacy_only", "era"), [(True, LEGACY), (False, MODERN)], ids=["legacy", "dual-era"])
async def test_a_hundred_probes_leave_no_session_in_a_real_server(legacy_only: bool, era: str) -> None:
    """As the registry asks: deep, and in the era that is known. What leaks does so once per probe."""
    async with _sdk(legacy_only=legacy_only) as (url, manager):
        known = ""
        for number in range(100):
            result = await probe.probe(Target(url, deep=number % 10 == 0), era=known)
            assert (result.state, result.reason.message, result.era, result.name) == ("ok", "", era, "research")
            known = result.era
        assert manager._server_instances == {}


async def test_an_answer_larger_than_the_limit_is_an_error(serve, answer) -> None:
    server = await serve(answer(200, b" " * (1 << 20), content_type="application/json"))
    result = await probe.probe(Target(server.url))
    assert (result.state, result.reason) == ("error", Reason("AnswerTooLarge", "answer larger than 64 KiB"))


TOOLS = {"tools": [{"name": "harper", "inputSchema": {"b": 1, "a": 2}}, {"name": "get_health"}, {"no": "name"}, 7]}


@pytest.mark.parametrize("replies", [{"server/discover": DISCOVERED}, {"initialize": INITIALIZED}])
async def test_the_tools_when_asked_for(serve, mcp, replies: dict) -> None:
    server = await serve(mcp({**replies, "tools/call": OK, "tools/list": TOOLS}, session="s1"))
    result = await probe.probe(Target(server.url, deep=True, tools=True), clock=lambda: 7.0)
    assert result.state == "ok"
    assert list(result.tools) == ["harper", "get_health"]
    assert result.listed == 7.0
    assert methods(server).count("tools/list") == 1
    assert (await probe.probe(Target(server.url, deep=True))).tools is None


async def test_the_order_of_a_schemas_keys_is_no_difference(serve, mcp) -> None:
    swapped = {"tools": [{"name": "harper", "inputSchema": {"a": 2, "b": 1}}]}
    other = {"tools": [{"name": "harper", "inputSchema": {"a": 2, "b": 3}}]}
    digests = []
    for tools in (TOOLS, swapped, other):
        server = await serve(mcp({"server/discover": DISCOVERED, "tools/list": tools}))
        digests.append((await probe.probe(Target(server.url, tools=True))).tools["harper"])
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("tools", [404, 500, 401, {"tools": "none"}, {}, {"tools": [{"name": "x" * 70_000}]}])
async def test_a_list_of_tools_that_cannot_be_had_is_no_illness(serve, mcp, tools) -> None:
    server = await serve(mcp({"server/discover": DISCOVERED, "tools/call": OK, "tools/list": tools}))
    result = await probe.probe(Target(server.url, deep=True, tools=True))
    assert (result.state, result.tools) == ("ok", None)
    assert result.listed is not None


async def test_who_is_down_is_not_asked_for_tools(serve, answer) -> None:
    server = await serve(answer(503))
    assert (await probe.probe(Target(server.url, tools=True))).listed is None
    assert len(server.asked) == 1


# ---- agents of ours that ask for a token ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "page", "state", "reason"),
    [
        (200, {"status": "ok", "name": "research", "version": "1.2"}, "ok", ""),
        (200, {"status": "degraded", "message": "Unreachable: argos"}, "degraded", "Unreachable: argos"),
        (503, {"status": "error", "message": "no model"}, "error", "no model"),
        (404, {"detail": "Not Found"}, "unauthenticated", "reachable, needs credentials (HTTP 401)"),
        (200, ["ok"], "unauthenticated", "reachable, needs credentials (HTTP 401)"),
    ],
)
async def test_one_of_ours_says_on_its_open_page_what_it_would_say_over_mcp(
    serve, answer, status: int, page: object, state: str, reason: str
) -> None:
    closed, open_ = answer(401), answer(status, json.dumps(page).encode(), content_type="application/json")

    async def protected(asked, writer) -> None:
        await (open_ if (asked.method, asked.path) == ("GET", "/healthz") else closed)(asked, writer)

    server = await serve(protected)
    target = Target(server.url, deep=True, tools=True, ours=True, headers={"authorization": "Bearer secret"})
    result = await probe.probe(target)
    assert (result.state, result.reason.message, result.tools) == (state, reason, None)
    assert "authorization" not in server.asked[-1].headers
    assert len(server.asked) == 2
    assert (await probe.probe(Target(server.url, deep=True))).state == "unauthenticated"


SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def test_a_server_of_the_sse_transport_is_asked_for_its_stream_and_left(serve) -> None:
    """The stream never ends; a ping, which is a comment, may come before the event."""

    async def endless(asked, writer) -> None:
        event = b": ping\r\n\r\nevent: endpoint\r\ndata: /messages?session_id=1\r\n\r\n"
        writer.write(SSE + b"%x\r\n%s\r\n" % (len(event), event))
        await writer.drain()
        await asyncio.Event().wait()

    server = await serve(endless)
    result = await probe.probe(Target(server.url, sse=True, headers={"X-Key": "k"}))
    assert (result.state, result.reason.message) == ("ok", "")
    ((method, headers),) = [(asked.method, asked.headers) for asked in server.asked]
    assert (method, headers["accept"], headers["x-key"]) == ("GET", "text/event-stream", "k")


@pytest.mark.parametrize(("status", "state", "code", "message"), STATUSES)
async def test_a_status_is_a_finding_of_a_stream_too(serve, answer, status, state, code, message) -> None:
    server = await serve(answer(status, location="http://169.254.169.254/"))
    result = await probe.probe(Target(server.url, sse=True))
    assert (result.state, result.reason) == (state, Reason(code, message))


@pytest.mark.parametrize("kind", ["text/html", "text/event-stream"])
async def test_a_page_is_no_stream(serve, answer, kind: str) -> None:
    body = b"event: endpoint\n\n" if kind == "text/html" else b"event: message\ndata: endpoint\n\n"
    server = await serve(answer(200, body, content_type=kind))
    result = await probe.probe(Target(server.url, sse=True))
    assert (result.state, result.reason.code) == ("error", "NotMcp")


async def test_a_stream_without_a_word_is_no_answer(serve) -> None:
    async def silent(asked, writer) -> None:
        writer.write(SSE)
        await writer.drain()
        await asyncio.Event().wait()

    server = await serve(silent)
    result = await probe.probe(Target(server.url, sse=True), timeout=0.1)
    assert (result.state, result.reason.code) == ("error", "NoAnswer")


class Keeping:
    """A server of the current era that leaves its connections open; `asked` has the connection and method of each."""

    def __init__(self) -> None:
        self.replies = {"server/discover": DISCOVERED, "tools/call": OK, "tools/list": {"tools": []}}
        self.asked: list[tuple[int, str]] = []
        self.fields: list[str] = []
        self.connections: list[asyncio.StreamWriter] = []
        self.silent = False

    @contextlib.asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        finally:
            server.close()
            server.close_clients()
            await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.connections)
        self.connections.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(line for line in head.split("\r\n") if line.startswith("content-length"))
                message = json.loads(await reader.readexactly(int(length.split(":")[1])))
                self.asked.append((number, message["method"]))
                self.fields.append(head)
                if self.silent:
                    continue
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": self.replies[message["method"]]}
                body = json.dumps(reply).encode()
                kind = "content-type: application/json"
                writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()


async def test_on_a_line_that_is_kept_the_health_alone_is_asked_for() -> None:
    server, line = Keeping(), probe.Line()
    async with server.running() as url:
        whole = await probe.probe(Target(url, deep=True, tools=True), line=line)
        brief = await probe.probe(Target(url, deep=True), line=line)
        server.replies["tools/call"] = said('{"status": "degraded", "message": "LLM: no key"}')
        worse = await probe.probe(Target(url, deep=True), line=line)
        assert not line.kept, "who is not well is asked everything"
        await probe.probe(Target(url, deep=True), line=line)
        line.close()
    assert (whole.brief, brief.brief, brief.tools, brief.listed) == (False, True, None, None)
    assert (brief.state, brief.era, brief.name, brief.version) == ("ok", MODERN, "research", "1.2.3")
    assert (worse.state, worse.reason.code, worse.name) == ("degraded", "ProviderDown", "research")
    first = [(0, "server/discover"), (0, "tools/call"), (0, "tools/list"), (0, "tools/call"), (0, "tools/call")]
    assert server.asked == [*first, (1, "server/discover"), (1, "tools/call")]
    assert not any("connection: close" in fields for fields in server.fields)


async def test_a_line_that_was_closed_is_a_whole_probe_at_once() -> None:
    server, line = Keeping(), probe.Line()
    async with server.running() as url:
        await probe.probe(Target(url, deep=True), line=line)
        server.connections[0].transport.abort()
        result = await probe.probe(Target(url, deep=True), line=line)
        line.close()
    assert (result.state, result.brief) == ("ok", False)
    assert [call for call in server.asked if call[0]] == [(1, "server/discover"), (1, "tools/call")]


async def test_another_server_on_the_same_line_is_noticed() -> None:
    """A proxy may send what comes next to another one; each answer of 2026-07-28 says whose it is."""
    server, line = Keeping(), probe.Line()
    async with server.running() as url:
        await probe.probe(Target(url, deep=True), line=line)
        other = {"io.modelcontextprotocol/serverInfo": {"name": "writer", "version": "2"}}
        server.replies["tools/call"] = {**OK, "_meta": other}
        result = await probe.probe(Target(url, deep=True), line=line)
        line.close()
    assert (result.name, result.version, result.brief) == ("writer", "2", True)


async def test_silence_on_a_line_is_an_error_and_ends_it() -> None:
    server, line = Keeping(), probe.Line()
    async with server.running() as url:
        await probe.probe(Target(url, deep=True), line=line)
        server.silent = True
        result = await probe.probe(Target(url, deep=True), line=line, timeout=0.2)
        assert (result.state, result.reason.code, result.era) == ("error", "NoAnswer", "")
        assert not line.kept
        server.silent = False
        assert (await probe.probe(Target(url, deep=True), line=line)).state == "ok"
        line.close()
    assert server.asked[-2:] == [(1, "server/discover"), (1, "tools/call")]


async def test_an_earlier_era_has_no_line(serve, mcp) -> None:
    server, line = await serve(mcp({"initialize": INITIALIZED, "tools/call": OK}, session="s1")), probe.Line()
    assert (await probe.probe(Target(server.url, deep=True), line=line)).era == LEGACY
    assert not line.kept
    assert methods(server)[-1] == "DELETE"


def test_a_confirmation_of_a_brief_answer_has_the_time_of_a_whole_one() -> None:
    assert probe.patience(Result("ok", latency=0.9, brief=True)) == pytest.approx(2.7)
