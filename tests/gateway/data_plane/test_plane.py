"""Real MCP clients of both eras through the gateway to real MCP servers, and callers that mean no good."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import mcp_types as t
import pytest
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from pallas_contract import names
from pallas_contract.fleet.access_model import Tenant
from pallas_gateway.data_plane import message
from pallas_gateway.tenants import Tenants
from pallas_service.access.caller import Caller
from pallas_service.http.bodies import AT_ONCE
from tests.gateway.door import ERAS, FORM, LEGACY, LIMIT, MODERN, OWN, PHONE, UI, Agent, Door, opened, text

DEADLINE = 60
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def scout() -> Agent:
    return Agent()


@asynccontextmanager
async def before(*agents: Agent, **options: Any) -> AsyncIterator[Door]:
    async with AsyncExitStack() as stack:
        apps: dict[str, ASGIApp | str] = {agent.name: await stack.enter_async_context(agent.app()) for agent in agents}
        yield await stack.enter_async_context(opened(apps, **options))


async def test_each_agent_is_called_under_its_own_names(era: str, scout: Agent) -> None:
    async with before(scout, Agent("oracle")) as door:
        for agent in ("scout", "oracle"):
            async with door.client(agent, era) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "steps", "wait", "ask"]
                assert text(await client.call_tool("echo", {"text": "grüße"})) == f"{agent}: grüße"
        calls = [record.call for record in door.noted.ended if record.call.method == "tools/call"]
        assert [(call.agent, call.name) for call in calls] == [("scout", "echo"), ("oracle", "echo")]
        assert {record.outcome for record in door.noted.ended} == {"answered"}


async def test_a_service_is_there_for_those_who_may_call_it_and_for_nobody_else() -> None:
    app = JSONResponse({"jsonrpc": "2.0", "id": 7, "result": {}})
    async with opened({"memory": app}, tokens={"ui": UI, "phone": PHONE}) as door:
        route = replace(door.plane.routes["memory"], kind="service", callers=frozenset({"ui"}))
        door.plane.routes = {"memory": route}
        answers = {}
        for path, token in (("services", UI), ("services", PHONE), ("agents", UI)):
            head = {**accept(), "authorization": f"Bearer {token}"}
            answers[path, token] = (await door.web.post(f"/{path}/memory/mcp", json=PING, headers=head)).json()
    assert answers["services", UI]["result"] == {}
    assert answers["services", PHONE]["error"]["data"] == {"reason": "unknown_agent"}
    assert answers["services", PHONE]["error"]["message"] == "there is no service `memory` behind this gateway"
    assert answers["agents", UI]["error"]["message"] == "there is no agent `memory` behind this gateway"


async def test_progress_passes_while_the_call_goes_on(era: str, scout: Agent) -> None:
    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)
        scout.more.set()  # the second step is only taken once the first has come through

    steps: list[str | None] = []
    async with asyncio.timeout(DEADLINE), before(scout) as door, door.client("scout", era) as client:
        result = await client.call_tool("steps", {"text": "done"}, progress_callback=progressed)
    assert (text(result), steps) == ("scout: done", ["one", "two"])


async def test_sessions_are_the_agents_and_pass_unharmed(scout: Agent) -> None:
    async with before(scout) as door:
        async with door.client("scout", LEGACY) as client:
            await client.call_tool("echo", {})
            await client.call_tool("echo", {})
        ids = {head["mcp-session-id"] for head in scout.heads if "mcp-session-id" in head}
        assert len(ids) == 1
        ended = await door.web.post(door.url(), json=PING, headers={"mcp-session-id": ids.pop(), **accept()})
        assert ended.status_code == 404  # the client has ended it by DELETE; 404 has it begin anew
        assert [record.call.method for record in door.noted.ended].count("_END") == 1


async def test_a_question_of_the_agent_reaches_the_caller_and_comes_back(scout: Agent) -> None:
    async def answering(context: Any, params: t.ElicitRequestParams) -> t.ElicitResult:
        assert params.message == FORM.message
        return t.ElicitResult(action="decline")

    async with (
        asyncio.timeout(DEADLINE),
        before(scout) as door,
        door.client("scout", LEGACY, elicitation_callback=answering) as client,
    ):
        assert text(await client.call_tool("ask", {})) == "decline"


async def test_who_hangs_up_ends_the_work_behind(era: str, scout: Agent) -> None:
    call: asyncio.Task[Any]
    async with asyncio.timeout(DEADLINE), before(scout) as door:
        if era == MODERN:
            async with door.client("scout", era) as client:
                call = asyncio.create_task(client.call_tool("wait", {}))
                await scout.waiting.wait()
                call.cancel()
                await scout.cancelled.wait()
        else:
            body, head = await in_session(door)
            call = asyncio.create_task(door.web.post(door.url(), json=body, headers=head))
            await scout.waiting.wait()
            call.cancel()  # closes the connection, and says nothing of MCP
            await scout.cancelled.wait()
        await asyncio.gather(call, return_exceptions=True)
        while not (ends := [record for record in door.noted.ended if record.call.name == "wait"]):
            await door.noted.until(len(door.noted.ended) + 1)
        assert ends[0].outcome == "hung_up"


async def in_session(door: Door) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a call of `wait`, and the headers of a session that was opened for it."""
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}
    reply = await door.web.post(door.url(), json=hello, headers=accept())
    head = accept() | {"mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await door.web.post(door.url(), json=done, headers=head)).status_code == 202
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}, head


def accept() -> dict[str, str]:
    return {"accept": "application/json, text/event-stream"}


async def test_the_agent_gets_the_gateways_token_and_not_the_callers(era: str, scout: Agent) -> None:
    async with before(scout, tokens={"ui": UI, "phone": PHONE}, own=OWN) as door:
        for token in (UI, PHONE):
            async with door.client("scout", era, token) as client:
                await client.call_tool("echo", {})
        assert {head["authorization"] for head in scout.heads} == {f"Bearer {OWN}"}
        callers = [head[names.CALLER_HEADER] for head in scout.heads]
        assert len(set(callers)) == 2
        assert callers == sorted(callers, key=callers.index)  # all of the first, then all of the second
        assert {record.call.caller for record in door.noted.ended} == {"ui", "phone"}
        spoken = str([head.raw for head in scout.heads])
        assert UI not in spoken
        assert PHONE not in spoken


async def test_nobody_enters_without_a_token(scout: Agent) -> None:
    async with before(scout, tokens={"ui": UI}) as door:
        for header in ({}, {"authorization": f"Bearer {OWN}"}):
            reply = await door.web.post(door.url(), json=PING, headers=header)
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"].startswith("Bearer ")
    assert (scout.heads, door.noted.begun) == ([], [])


async def test_what_is_for_the_gateway_alone_ends_there(scout: Agent) -> None:
    headers = {
        "cookie": "a=b",
        "x-forwarded-for": "10.0.0.1",
        "forwarded": "for=10.0.0.1",
        names.CALLER_HEADER: "made-up",
        "mcp-param-region": "eu",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    async with before(scout) as door:
        await door.web.post(door.url(), json=PING, headers=headers)
    assert scout.heads[0]["mcp-param-region"] == "eu"
    assert scout.heads[0]["traceparent"] == headers["traceparent"]
    assert not {"cookie", "x-forwarded-for", "forwarded", names.CALLER_HEADER} & set(scout.heads[0].keys())


async def ask(door: Door, body: bytes | dict[str, Any], **options: Any) -> tuple[int, dict[str, Any]]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = await door.web.post(door.url(options.pop("agent", "scout")), content=content, headers=options)
    return reply.status_code, reply.json()


def refusal(code: int, reason: str, request_id: int | None = 7) -> tuple[int, str, int | None]:
    return code, reason, request_id


def reason_of(body: dict[str, Any]) -> tuple[int, str, int | None]:
    return body["error"]["code"], body["error"]["data"]["reason"], body["id"]


async def test_headers_that_say_something_else_than_the_body_are_refused(scout: Agent) -> None:
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "delete"}}
    async with before(scout) as door:
        for header in ({"mcp-method": "tools/list"}, {"mcp-method": "tools/call", "mcp-name": "echo"}):
            status, body = await ask(door, call, **header)
            assert (status, reason_of(body)) == (400, refusal(-32020, "header_mismatch"))
        records = door.noted.ended
        assert [(record.call.name, record.outcome) for record in records] == [("delete", "header_mismatch")] * 2
    assert scout.heads == []


async def test_of_a_long_name_the_beginning_is_kept_and_all_of_it_is_compared(scout: Agent) -> None:
    called = "a" * 5000
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": called}}
    async with before(scout) as door:
        await door.web.post(door.url(), json=call, headers={"mcp-name": called})
        assert [head["mcp-name"] for head in scout.heads] == [called]
        status, body = await ask(door, call, **{"mcp-name": "a" * 4999})
        assert (status, reason_of(body)) == (400, refusal(-32020, "header_mismatch"))
        assert [record.call.name for record in door.noted.ended] == ["a" * 200] * 2


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_head_that_can_be_read_in_two_ways_goes_nowhere(scout: Agent, method: str) -> None:
    twice = [(b"mcp-session-id", b"a"), (b"mcp-session-id", b"b")]
    async with before(scout) as door:
        hidden = [(b"mcp-param-x", b"caf\xe9"), (b"mcp-param-x", b"cafe")]
        for header in (twice, [(b"mcp-name", b"caf\xe9")], hidden):
            reply = await door.web.request(method, door.url(), headers=header, json=PING if method == "POST" else None)
            request_id = 7 if method == "POST" else None
            assert (reply.status_code, reason_of(reply.json())) == (400, refusal(-32020, "header_mismatch", request_id))
    assert scout.heads == []


async def test_what_is_no_message_goes_nowhere(scout: Agent) -> None:
    async with before(scout) as door:
        assert reason_of((await ask(door, b"{"))[1]) == refusal(-32700, "malformed", None)
        assert reason_of((await ask(door, b"[]"))[1]) == refusal(-32600, "malformed", None)
        twice = b'{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{}}'
        assert reason_of((await ask(door, twice))[1]) == refusal(-32700, "malformed", None)
        put = await door.web.put(door.url(), json=PING)
        assert (put.status_code, put.headers["allow"]) == (405, "DELETE, GET, POST")
    assert scout.heads == []


async def test_an_agent_that_is_not_behind_it_is_not_found(scout: Agent) -> None:
    async with before(scout) as door:
        status, body = await ask(door, PING, agent="registry")
        assert (status, reason_of(body)) == (404, refusal(-32001, "unknown_agent"))
        for path in ("/agents/..%2fscout/mcp", "/agents/scout/mcp/", "/agents//mcp", "/mcp"):
            assert (await door.web.post(httpx.URL(str(door.web.base_url), raw_path=path.encode()))).status_code == 404
    assert scout.heads == []


async def test_bodies_have_a_limit(scout: Agent) -> None:
    async def chunked() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * (LIMIT // 4)

    async with before(scout) as door:
        status, body = await ask(door, b" " * (LIMIT + 1))
        assert (status, reason_of(body)) == (413, refusal(-32600, "too_large", None))
        reply = await door.web.post(door.url(), content=chunked())
        assert (reply.status_code, reason_of(reply.json())) == (413, refusal(-32600, "too_large", None))
        door.plane.bodies.left = LIMIT // 2
        status, body = await ask(door, b" " * LIMIT)
        assert (status, reason_of(body)) == (503, refusal(-32603, "busy", None))
        assert door.plane.bodies.left == LIMIT // 2
    assert scout.heads == []


async def test_large_bodies_and_answers_pass_as_they_are() -> None:
    async def mirror(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(await Request(scope, receive).body(), media_type="application/json")(scope, receive, send)

    large = json.dumps({**PING, "params": {"x": "ü" * (LIMIT // 16)}}, indent=1).encode()
    async with answering(mirror) as door:
        reply = await door.web.post(door.url(), content=large)
        assert reply.content == large
        assert door.plane.bodies.left == AT_ONCE * LIMIT


async def test_a_large_body_counts_no_longer_once_the_agent_has_it() -> None:
    async def working(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        await done.wait()
        await PlainTextResponse("done")(scope, receive, send)

    done = asyncio.Event()
    large = {**PING, "params": {"x": "a" * (LIMIT // 2)}}
    async with asyncio.timeout(DEADLINE), answering(working) as door:
        # twice as many as may be in memory at once, one after the other
        calls = []
        for _ in range(2 * AT_ONCE):
            calls.append(asyncio.create_task(door.web.post(door.url(), json=large)))
            while len(door.noted.begun) < len(calls) or door.plane.bodies.left < AT_ONCE * LIMIT:
                await asyncio.sleep(0)
        assert door.noted.ended == []
        done.set()
        assert {reply.text for reply in await asyncio.gather(*calls)} == {"done"}


async def test_a_call_that_takes_too_long_is_ended_with_the_work_behind(scout: Agent) -> None:
    async with asyncio.timeout(DEADLINE), before(scout) as door:
        body, head = await in_session(door)
        door.plane.timeout = 3
        reply = await door.web.post(door.url(), json=body, headers=head)
        await scout.cancelled.wait()
        assert reply.status_code == 200
        answer = json.loads(reply.text.strip().rpartition("data: ")[2])
        assert reason_of(answer) == refusal(-32003, "timeout", 2)
        assert answer["error"]["message"] == "agent `scout` did not finish its answer in 3 s"
        assert door.noted.ended[-1].outcome == "timeout"


async def test_progress_does_not_extend_the_time_of_a_call() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n'
            await asyncio.sleep(0.01)

    body = StreamingResponse(endless(), media_type="text/event-stream")
    async with asyncio.timeout(DEADLINE), opened({"scout": body}, timeout=0.5) as door:
        reply = await door.web.post(door.url(), json=PING)
        last = reply.text.strip().rpartition("data: ")[2]
        assert reason_of(json.loads(last)) == refusal(-32003, "timeout")


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_who_only_listens_may_do_so_for_longer(method: str) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b": first\n\n"
        await asyncio.sleep(0.2)
        yield b": last\n\n"

    message = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {}}
    body = StreamingResponse(stream(), media_type="text/event-stream")
    async with asyncio.timeout(DEADLINE), opened({"scout": body}, timeout=0.01) as door:
        reply = await door.web.request(method, door.url(), json=message if method == "POST" else None)
        assert reply.text == ": first\n\n: last\n\n"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_who_only_listens_holds_up_no_end(method: str) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b": first\n\n"
        await asyncio.Event().wait()

    message = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {}}
    body = StreamingResponse(stream(), media_type="text/event-stream")
    async with asyncio.timeout(DEADLINE), opened({"scout": body}) as door:
        asked = door.web.stream(method, door.url(), json=message if method == "POST" else None)
        async with asked as reply:
            await anext(reply.aiter_raw())
            assert door.metrics.idle.is_set()


async def test_a_tenant_may_make_so_many_requests_a_minute_and_others_go_on() -> None:
    limits = Tenants({"acme": Tenant(callers=["ui"], requests="2/minute"), "home": Tenant(callers=["phone"])})
    call = {**PING, "method": "tools/call"}
    async with opened({"scout": PlainTextResponse("done")}, tokens={"ui": UI, "phone": PHONE}, tenants=limits) as door:

        async def asked(body: dict[str, Any], token: str = UI) -> httpx.Response:
            return await door.web.post(door.url(), json=body, headers={"authorization": f"Bearer {token}"})

        for body in (call, PING, call, PING):
            assert (await asked(body)).text == "done"
        reply = await asked(call)
        assert (reply.status_code, reason_of(reply.json())) == (200, refusal(-32002, "rate"))
        assert reply.headers["retry-after"] == str(reply.json()["error"]["data"]["retry_after"])
        assert (await asked({"jsonrpc": "2.0", "method": "tools/call"})).status_code == 429
        assert (await asked(PING)).text == "done"
        assert (await asked(call, PHONE)).text == "done"
        calls = [(record.call.tenant, record.outcome) for record in door.noted.ended if record.call.method != "ping"]
        assert calls == [("acme", "answered")] * 2 + [("acme", "rate")] * 2 + [("home", "answered")]


async def test_a_tenants_calls_have_its_own_time_and_room(scout: Agent) -> None:
    limits = Tenants({"acme": Tenant(callers=["ui"], concurrent=1, timeout=3)})
    async with (
        asyncio.timeout(DEADLINE),
        before(scout, tokens={"ui": UI}, tenants=limits) as door,
        door.client("scout", MODERN, UI) as client,
    ):
        with pytest.raises(MCPError) as late:
            await client.call_tool("wait", {})
        await scout.cancelled.wait()
        assert (late.value.error.code, late.value.error.data) == (-32003, {"reason": "timeout"})
        allowance = limits.of(Caller("ui", "", ""))
        assert allowance is not None
        with allowance.used(), pytest.raises(MCPError) as full:
            await client.call_tool("echo", {})
        assert (full.value.error.code, full.value.error.data) == (-32002, {"reason": "concurrency", "retry_after": 1})


async def test_a_body_of_many_values_is_too_large_and_others_are_read_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parse(body: bytes) -> message.Message:
        threads.append(threading.current_thread())
        return parse_body(body)

    threads: list[threading.Thread] = []
    parse_body = message.parse
    monkeypatch.setattr(message, "parse", parse)
    async with answering(PlainTextResponse("done")) as door:
        status, body = await ask(door, b'{"id":7,"method":"ping","params":[' + b"[]," * 100_000 + b"[]]}")
        assert (status, reason_of(body)) == (413, refusal(-32600, "too_large", None))
        assert body["error"]["message"] == "request body too large: it may have 100000 values"
        for size in (LIMIT // 2, 0):
            assert (await door.web.post(door.url(), json={**PING, "params": {"x": "a" * size}})).text == "done"
        assert [thread is threading.main_thread() for thread in threads] == [False, False, True]
        assert door.plane.bodies.left == AT_ONCE * LIMIT


@asynccontextmanager
async def answering(app: ASGIApp) -> AsyncIterator[Door]:
    async with opened({"scout": app}) as door:
        yield door


async def test_an_agent_that_is_down_is_an_error_with_the_requests_id() -> None:
    async with opened({"scout": "http://127.0.0.1:1/mcp"}) as door:
        status, body = await ask(door, PING)
        assert (status, reason_of(body)) == (200, refusal(-32003, "unreachable"))
        assert body["error"]["message"] == "agent `scout` refuses connections"
        assert (await ask(door, {"jsonrpc": "2.0", "method": "notifications/initialized"}))[0] == 502
        assert (await door.web.get(door.url())).status_code == 502
        assert door.reachability.lost == {"scout": "unreachable"}


@pytest.mark.parametrize("status", [401, 403])
async def test_an_agents_challenge_does_not_reach_the_caller(status: int) -> None:
    challenge = {"www-authenticate": 'Bearer resource_metadata="http://scout:8080/"'}
    async with answering(PlainTextResponse("no", status, challenge)) as door:
        reply = await door.web.post(door.url(), json=PING)
    assert (reply.status_code, reason_of(reply.json())) == (200, refusal(-32003, "not_admitted"))
    assert "www-authenticate" not in reply.headers


class Unthought(Exception):
    """No part of the gateway knows it."""


EDGES = {
    "the message": ("plane.message.parse", -32003, None),
    "what may be called": ("plane.permission.decide", -32003, 7),
    "the request to the agent": ("plane.headers.for_agent", -32003, 7),
    "the agent's answer": ("plane.headers.for_client", -32003, 7),
    "a small answer": ("plane.upstream.whole", -32003, 7),
}


@pytest.mark.parametrize(("edge", "code", "request_id"), EDGES.values(), ids=EDGES)
async def test_whatever_is_raised_its_caller_is_told_and_it_goes_on(
    edge: str, code: int, request_id: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No message and no answer of an agent ends the gateway, or a call without a word, or takes its place for good."""

    def fail(*_: Any, **__: Any) -> Any:
        raise Unthought("secret")

    tenants = Tenants({"acme": Tenant(callers=["ui"], concurrent=1)})
    answer = JSONResponse({"jsonrpc": "2.0", "id": 7, "result": {}})
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}}
    bearer = {"authorization": f"Bearer {UI}"}
    async with opened({"scout": answer}, tokens={"ui": UI}, tenants=tenants) as door:
        with monkeypatch.context() as patch, capture_logs() as lines:
            patch.setattr(f"pallas_gateway.data_plane.{edge}", fail)
            for _ in range(2):
                status, body = await ask(door, call, **bearer)
                assert (status, reason_of(body)) == (
                    500 if request_id is None else 200,
                    refusal(code, "failed", request_id),
                )
                assert "secret" not in json.dumps(body)
        assert [line["event"] for line in lines if line.get("exc_info")] == ["request failed"] * 2
        assert [record.outcome for record in door.noted.ended] == ["failed"] * 2
        status, body = await ask(door, call, **bearer)
        assert (status, body["result"]) == (200, {})


async def test_a_redirect_is_not_followed() -> None:
    async with answering(Response(status_code=307, headers={"location": "http://127.0.0.1:1/"})) as door:
        body = (await ask(door, PING))[1]
    assert reason_of(body) == refusal(-32003, "unreachable")
    assert body["error"]["message"] == "agent `scout` answered with a redirect"


async def test_an_answer_that_breaks_off_is_an_error_in_its_stream() -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n'
        raise ConnectionResetError

    async with answering(cut(StreamingResponse(stream(), media_type="text/event-stream"))) as door:
        reply = await door.web.post(door.url(), json=PING)
        first, last = reply.text.strip().split("\n\n")
        assert "progress" in first
        assert reason_of(json.loads(last.partition("data: ")[2])) == refusal(-32003, "interrupted")
        assert door.noted.ended[-1].outcome == "interrupted"


async def test_half_an_event_or_half_a_document_is_cut_and_not_mended() -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b'data: {"jsonrpc":'
        raise ConnectionResetError

    for media in ("text/event-stream", "application/json"):
        async with answering(cut(StreamingResponse(half(), media_type=media))) as door:
            with pytest.raises(httpx.RemoteProtocolError):
                await door.web.post(door.url(), json=PING)


async def test_a_document_that_breaks_off_is_an_error() -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc":'
        raise ConnectionResetError

    body = StreamingResponse(half(), media_type="application/json", headers={"content-length": "100"})
    async with answering(cut(body)) as door:
        assert reason_of((await ask(door, PING))[1]) == refusal(-32003, "interrupted")


def cut(app: ASGIApp) -> ASGIApp:
    """Return an application whose connection is closed where it fails, without a word in the log."""

    async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(ConnectionResetError):
            await app(scope, receive, send)

    return quiet
