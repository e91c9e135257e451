"""`agent.execute`: from a message to its answer, within the limits of the caller's tenant."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pallas_contract import names
from pallas_gateway.data_plane import message
from pallas_gateway.data_plane.plane import digest
from pallas_gateway.own.admission import Admission
from pallas_gateway.own.agents.agentlets import Agentlets
from pallas_gateway.own.execution import envelope, functions
from pallas_gateway.own.execution.envelope import Envelope, Malformed, Params
from pallas_gateway.own.execution.functions import Functions
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers import objects, peer
from pallas_gateway.own.peers.peer import Peer, ToolCall
from pallas_gateway.own.tracing import Tracing
from pallas_service.access.caller import caller
from pallas_service.http.disconnect import HungUp

_MARK = envelope.METHOD.encode()


def _is_execution(body: bytes) -> bool:
    """Return whether a body is one message with the method `agent.execute`, in any envelope."""
    if _MARK not in body:
        return False
    try:
        return message.parse(body).method == envelope.METHOD
    except (message.Malformed, message.TooManyValues):
        return False  # for the transport, which answers it as it does everything malformed


class Executions:
    """Calls of functions of the agents behind the gateway, by host name."""

    def __init__(
        self,
        client: aiohttp.ClientSession,
        admission: Admission,
        tracing: Tracing,
        *,
        agents: Mapping[str, Peer],
        agentlets: Agentlets,
    ) -> None:
        self._client = client
        self._admission = admission
        self._tracing = tracing
        self._agents = agents
        self._agentlets = agentlets
        self._functions = Functions(client)

    async def serve(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> bool:
        """Answer one request as ASGI, and return whether it was one for this method.

        `receive` gives the body once more, and then the end of the connection.
        """
        if not _is_execution(body):
            return False
        head = Envelope({})
        headers = {}
        status = 200
        try:
            data = json.loads(body)
            head = envelope.envelope(data)
            _check_headers(scope, head)
            answer = await self._answer(Request(scope, receive), data, head)
        except HungUp:
            return True
        except MCPError as error:
            answer = head.refusal(error)
            status = 400 if isinstance(error, Malformed) else 200
            if isinstance(error, Failed):
                seconds = error.error.data.get("retry_after")
                headers = {"retry-after": str(seconds)} if seconds else {}
        response = Response(envelope.encoded(answer), status, headers, media_type="application/json")
        await response(scope, receive, send)
        return True

    async def _answer(self, request: Request, data: dict[str, Any], head: Envelope) -> dict[str, Any]:
        params = envelope.params(data)
        verified = caller(request)
        tenant = params.meta.tenant_id or self._admission.tenant(verified)
        host = names.slug(params.agent_id)
        started = time.perf_counter()

        async def executed() -> dict[str, Any]:
            seconds = self._admission.seconds_of(verified, tenant)
            return await self._execute(request, params, seconds)

        result = await self._admission.counted(
            request,
            envelope.METHOD,
            params.function,
            executed,
            tenant=tenant,
            agent=host if host in self._agents else names.GATEWAY,
        )
        return head.answer(result, round(1000 * (time.perf_counter() - started)))

    async def _execute(self, request: Request, params: Params, seconds: float) -> dict[str, Any]:
        agent = self._agents[self._agentlets.find(params.agent_id)]
        call = ToolCall(
            params.function,
            params.input,
            seconds,
            self._tracing.traceparent(self._tracing.trace(request)),
            caller=digest(caller(request)),
            task=params.meta.task_id,
        )
        tool = await self._functions.find(agent, call)
        await asyncio.to_thread(functions.check_input, tool, params.input)
        answer = await peer.ask(self._client, agent, call)
        if answer.failed:
            raise Failed("function_error", f"Agent function error: {answer.text}")
        body = objects.structured(answer)
        result = {"answer": answer.text} if body is None else body
        written = result if answer.structured is None else answer.structured
        await asyncio.to_thread(functions.check_output, tool, written)
        return result


def _check_headers(scope: Scope, head: Envelope) -> None:
    request_id = head.head.get("id")
    try:
        message.check(message.Message(envelope.METHOD, None, request_id), Headers(scope=scope))
    except message.Malformed as error:
        raise Malformed(error.code, str(error), {"reason": "header_mismatch"}) from None
