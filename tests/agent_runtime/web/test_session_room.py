"""Whose session of the handshake era ends where there is no room, around a transport that only counts."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import httpx
import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import _error_response
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pallas_agent_runtime.web.sessions import Sessions
from pallas_contract import names

MOST = 20


def through_the_gateway(app: ASGIApp) -> ASGIApp:
    """Return `app` behind a gate that has verified the gateway's token."""
    user = AuthenticatedUser(AccessToken(token="gateway-0123456789", client_id=names.GATEWAY, scopes=[]))

    async def verified(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "user": user}, receive, send)

    return verified


class Transport:
    """Opens a session for whoever names none, ends it on DELETE; a POST with `wait` lasts until `release`."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.release, self.waiting = asyncio.Event(), asyncio.Semaphore(0)
        self._numbers = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._answer(Request(scope, receive)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        key = request.headers.get("mcp-session-id")
        if key is None:
            if await request.body() == b"nonsense":
                return Response(status_code=400)
            self.open.append(f"s{next(self._numbers)}")
            return PlainTextResponse("opened", headers={"mcp-session-id": self.open[-1]})
        if key not in self.open:
            return Response(status_code=404)
        if request.method == "DELETE":
            self.open.remove(key)
        if request.method == "GET" or b"wait" in await request.body():
            self.waiting.release()
            await self.release.wait()
        return PlainTextResponse("answered")


class Agent:
    def __init__(self, most: int = MOST) -> None:
        self.now = 0.0
        self.transport = Transport()
        self.sessions = Sessions(self.transport, most, idle=100, clock=lambda: self.now)

    async def ask(
        self,
        key: str = "",
        body: bytes = b"",
        *,
        address: str = "10.0.0.1",
        method: str = "POST",
        behind: str = "",
    ) -> httpx.Response:
        """Send a request; `behind` is the caller of whom the gateway tells."""
        self.now += 1
        head = {"mcp-session-id": key} if key else {}
        app: ASGIApp = self.sessions
        if behind:
            app = through_the_gateway(self.sessions)
            head[names.CALLER_HEADER] = behind
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://agent"
        ) as http:
            return await http.request(method, "/mcp", content=body, headers=head)

    async def open(self, address: str = "10.0.0.1", messages: int = 0) -> str:
        key: str = (await self.ask(address=address)).headers["mcp-session-id"]
        for _ in range(messages):
            assert (await self.ask(key, address=address)).status_code == 200
        return key


async def test_who_opens_sessions_by_the_thousand_keeps_nobody_out() -> None:
    agent = Agent()
    honest = [await agent.open("10.0.0.2", messages=3), await agent.open("10.0.0.2")]
    for _ in range(3 * MOST):
        await agent.open()
    assert len(agent.transport.open) == len(agent.sessions) == MOST
    assert set(honest) <= set(agent.transport.open)
    assert (await agent.ask(honest[0])).status_code == 200
    assert (agent.sessions.ended, agent.sessions.refused) == (2 * MOST + 2, 0)


async def test_unused_sessions_end_before_used_ones_and_old_ones_before_new_ones() -> None:
    agent = Agent(most=4)
    used = [await agent.open(messages=2) for _ in range(2)]
    unused = [await agent.open(messages=1) for _ in range(2)]
    assert (await agent.ask(used[0])).status_code == 200
    newest = await agent.open(messages=2)
    assert agent.transport.open == [*used, unused[1], newest]
    newer = await agent.open(messages=2)
    assert agent.transport.open == [*used, newest, newer]
    assert (await agent.open()) in agent.transport.open
    assert used[1] not in agent.transport.open


async def test_calls_under_way_are_never_ended_and_then_one_more_is_told_when_to_come_back() -> None:
    agent = Agent(most=2)
    keys = [await agent.open(messages=2) for _ in range(2)]
    calls = [asyncio.create_task(agent.ask(key, b"wait")) for key in keys]
    for _ in calls:
        await agent.transport.waiting.acquire()
    refused = await agent.ask()
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["id"]) == (503, "5", None)
    assert agent.sessions.refused == 1
    agent.transport.release.set()
    assert [reply.status_code for reply in await asyncio.gather(*calls)] == [200, 200]
    assert await agent.open() in agent.transport.open


async def test_an_open_stream_keeps_no_one_out() -> None:
    agent = Agent(most=2)
    keys = [await agent.open() for _ in range(2)]
    streams = [asyncio.create_task(agent.ask(key, method="GET")) for key in keys]
    for _ in streams:
        await agent.transport.waiting.acquire()
    assert await agent.open() in agent.transport.open
    agent.transport.release.set()
    await asyncio.gather(*streams)


async def test_an_id_that_is_under_way_is_refused_to_the_later_request_of_that_session() -> None:
    """The transport would give the answer of one to the other, and none to the rest."""
    agent = Agent()
    key, other = await agent.open(), await agent.open()
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"x": "wait"}}'
    calls = [asyncio.create_task(agent.ask(session, body)) for session in (key, other)]
    for _ in calls:
        await agent.transport.waiting.acquire()
    again = await agent.ask(key, body)
    assert (again.status_code, again.json()["id"]) == (400, 1)
    assert again.json()["error"]["message"] == "a request with this id is under way in this session"
    as_text = await agent.ask(
        key, body.replace(b"1", b'"1"').replace(b"wait", b"go")
    )  # to the transport it is the same
    assert (as_text.status_code, as_text.json()["id"]) == (400, "1")
    for harmless in (body.replace(b"1", b"2"), body.replace(b'"method"', b'"result"'), b"{", b"[]", b'"id"'):
        assert (await agent.ask(key, harmless.replace(b"wait", b"go"))).status_code == 200
    agent.transport.release.set()
    assert [reply.status_code for reply in await asyncio.gather(*calls)] == [200, 200]
    assert (await agent.ask(key, body)).status_code == 200


async def test_an_id_is_free_again_once_its_answer_has_ended() -> None:
    """A client reads the end of an answer before the transport has returned."""
    agent = Agent()
    key = await agent.open()
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    codes = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            codes.append((await agent.ask(key, body)).status_code)

    scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"mcp-session-id", key.encode())]}
    await agent.sessions(scope, receive, send)
    assert codes == [200]


@pytest.mark.parametrize("headers", [{"mcp-protocol-version": "2026-07-28"}, {"mcp-session-id": "made-up"}])
async def test_requests_without_a_session_of_theirs_end_none(headers: dict[str, str]) -> None:
    agent = Agent(most=1)
    key = await agent.open()
    seen: list[Any] = []

    async def transport(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["method"])
        await PlainTextResponse("stateless")(scope, receive, send)

    agent.sessions._app = transport
    async with httpx.AsyncClient(transport=httpx.ASGITransport(agent.sessions), base_url="http://agent") as http:
        await http.post("/mcp", headers=headers)
    agent.sessions._app = agent.transport
    await agent.ask(body=b"nonsense")
    assert (seen, agent.transport.open) == (["POST"], [key])


async def test_sessions_that_the_transport_has_ended_are_forgotten() -> None:
    agent = Agent()
    deleted, timed_out, idle, _ = [await agent.open() for _ in range(4)]
    assert (await agent.ask(deleted, method="DELETE")).status_code == 200
    agent.transport.open.remove(timed_out)
    assert (await agent.ask(timed_out)).status_code == 404
    assert len(agent.sessions) == 2
    agent.now += 101
    assert len(agent.sessions) == 0
    assert (await agent.ask(idle)).status_code == 200  # it is the transport that knows


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_nobody_uses_the_session_of_another_caller_of_the_gateway(method: str) -> None:
    agent = Agent()
    agent.transport.release.set()
    key = (await agent.ask(behind="ui")).headers["mcp-session-id"]
    strange = await agent.ask(key, method=method, behind="phone")
    unknown = await agent.ask("made-up", method=method, behind="phone")
    assert (strange.status_code, strange.content) == (unknown.status_code, unknown.content)
    assert strange.status_code == 404
    assert (await agent.ask(key, behind="ui")).status_code == 200
    assert agent.transport.open == [key]


async def test_a_session_that_is_forgotten_is_nobodys() -> None:
    """The transport may hold it a moment longer, and could not tell its owner from others."""
    agent = Agent()
    key = (await agent.ask(behind="ui")).headers["mcp-session-id"]
    agent.now += 101
    assert len(agent.sessions) == 0
    assert (await agent.ask(key, behind="phone")).status_code == 404


async def test_a_session_that_is_not_found_is_answered_as_by_the_sdk() -> None:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(_error_response("Session not found", 404)), base_url="http://agent"
    ) as http:
        expected = (await http.post("/mcp")).json()
    assert (await Agent().ask("made-up", behind="phone")).json() == expected
