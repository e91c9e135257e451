"""`agent.execute`: from a message to its answer, within the limits of the caller's tenant."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pallas_gateway.data_plane import message
from pallas_gateway.own.admission import Admission, Asked
from pallas_gateway.own.execution import envelope
from pallas_gateway.own.execution.durable.graphs import DurableGraphs
from pallas_gateway.own.execution.durable.journal import Journal
from pallas_gateway.own.execution.envelope import Envelope, Malformed, Params
from pallas_gateway.own.execution.graphs import Graphs
from pallas_gateway.own.execution.progress_stream import ProgressStream
from pallas_gateway.own.execution.run import Around
from pallas_gateway.own.execution.steps import Steps, Strangers, Work
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers.peer import Progress
from pallas_gateway.telemetry import spans
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


@dataclass(frozen=True, slots=True)
class Options:
    """What a gateway may have besides: a journal makes graphs durable, `strangers` registered themselves."""

    journal: Journal | None = None
    strangers: Strangers | None = None


ALONE = Options()
"""Graphs in memory, of agents of the file."""


class Executions:
    """Requests for functions of agents, one alone or several in a graph, which is durable with a `journal`."""

    def __init__(self, admission: Admission, steps: Steps, journal: Journal | None = None) -> None:
        self._admission = admission
        self._steps = steps
        around = Around(admission, steps)
        self._durable = DurableGraphs(around, journal) if journal else None
        self._graphs = self._durable or Graphs(around)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Go on with durable graphs, as long as this lasts."""
        if self._durable is None:
            yield
            return
        async with self._durable.running():
            yield

    def end(self) -> None:
        """Begin nothing more of durable graphs."""
        if self._durable is not None:
            self._durable.end()

    async def serve(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> bool:
        """Answer one request as ASGI, and return whether it was one for this method.

        `receive` gives the body once more, and then the end of the connection.
        """
        if not _is_execution(body):
            return False
        head = Envelope({})
        headers = {}
        status = 200
        stream = ProgressStream(send)
        try:
            data = json.loads(body)
            head = envelope.envelope(data)
            _check_headers(scope, head)
            request = Request(scope, receive)
            answer = await self._answer(request, data, head, progress=stream.opened(request, data, head))
        except HungUp:
            return True
        except MCPError as error:
            answer = head.refusal(error)
            status = 400 if isinstance(error, Malformed) else 200
            if isinstance(error, Failed):
                seconds = error.error.data.get("retry_after")
                headers = {"retry-after": str(seconds)} if seconds else {}
        if stream.begun:
            await stream.end(answer)
            return True
        response = Response(envelope.encoded(answer), status, headers, media_type="application/json")
        await response(scope, receive, send)
        return True

    async def _answer(
        self, request: Request, data: dict[str, Any], head: Envelope, progress: Progress | None
    ) -> dict[str, Any]:
        if isinstance(data.get("params"), dict) and "tasks" in data["params"]:
            with spans.request(envelope.METHOD, request.headers.get("traceparent", ""), {}):
                return await self._graphs.answer(request, data, head, progress)
        params = envelope.checked(Params, data)
        verified = caller(request)
        tenant = params.meta.tenant_id or self._admission.tenant(verified)
        started = time.perf_counter()

        async def executed() -> dict[str, Any]:
            seconds = self._admission.seconds_of(verified, tenant)
            work = Work(params.agent_id, params.function, params.input, params.meta.task_id, seconds)
            return await self._steps.execute(request, work)

        agent = self._steps.host(params.agent_id)
        asked = Asked(envelope.METHOD, params.function, agent, arguments=params.input)
        result = await self._admission.counted(request, asked, executed, tenant=tenant)
        return head.answer(result, round(1000 * (time.perf_counter() - started)))


def _check_headers(scope: Scope, head: Envelope) -> None:
    headers = Headers(scope=scope)
    request_id = head.head.get("id")
    # a page of another site may send text/plain without asking first (Fetch, CORS-safelisted request-header)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        text = "Invalid request: Content-Type must be application/json"
        raise Malformed(INVALID_REQUEST, text, {"reason": "malformed"})
    try:
        message.check(message.Message(envelope.METHOD, None, request_id), headers)
    except message.Malformed as error:
        raise Malformed(error.code, str(error), {"reason": "header_mismatch"}) from None
