"""One function of one agent: found, given what its schema wants, and its answer checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from starlette.requests import Request

from pallas_contract import names
from pallas_gateway.data_plane.plane import digest
from pallas_gateway.own.agents.agentlets import Agentlets
from pallas_gateway.own.execution import functions
from pallas_gateway.own.execution.functions import Functions
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers import objects, peer
from pallas_gateway.own.peers.peer import Peer, ToolCall
from pallas_gateway.own.permission import Permission
from pallas_gateway.own.tracing import Tracing
from pallas_service.access.caller import caller


@asynccontextmanager
async def _limited(seconds: float) -> AsyncIterator[None]:
    """End what is within after `seconds`, with `Failed`."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        raise Failed("timeout", f"Timeout: no answer in {seconds:g} s") from None


@dataclass(frozen=True, slots=True)
class Work:
    """A call of `function` of the agent that is called `agent`, with `seconds` left; `task` is the id at every hop."""

    agent: str
    function: str
    input: Mapping[str, Any]
    task: str
    seconds: float


class Steps:
    """Functions of the agents behind the gateway, by host name."""

    def __init__(
        self,
        client: aiohttp.ClientSession,
        tracing: Tracing,
        permission: Permission,
        *,
        agents: Mapping[str, Peer],
        agentlets: Agentlets,
    ) -> None:
        self._client = client
        self._tracing = tracing
        self._permission = permission
        self._agents = agents
        self._agentlets = agentlets
        self._functions = Functions(client)

    def host(self, agent: str) -> str:
        """Return the host name of an agent behind the gateway, else that of the gateway itself."""
        host = names.slug(agent)
        return host if host in self._agents else names.GATEWAY

    async def check(self, request: Request, work: Work, *, with_input: bool) -> None:
        """Check that the caller may call such a function, that it is there, and that the input fits where it is known.

        Raises:
            MCPError: one of them is not so.
        """
        agent, call = self._call(request, work)
        async with _limited(work.seconds):
            tool = await self._find(request, agent, call, work.input if with_input else None, uri=work.agent)
        if with_input:
            await asyncio.to_thread(functions.check_input, tool, work.input)

    async def execute(self, request: Request, work: Work) -> dict[str, Any]:
        """Return the result of a function.

        Raises:
            MCPError: there is none.
        """
        async with _limited(work.seconds):
            return await self._execute(request, work)

    async def _execute(self, request: Request, work: Work) -> dict[str, Any]:
        agent, call = self._call(request, work)
        tool = await self._find(request, agent, call, work.input, uri=work.agent)
        await asyncio.to_thread(functions.check_input, tool, work.input)
        await self._permission.confirm(caller(request), agent.host, call.tool, work.input)
        answer = await peer.ask(self._client, agent, call)
        if answer.failed:
            raise Failed("function_error", f"Agent function error: {answer.text}")
        body = objects.value(answer)
        result = {"answer": answer.text} if body is None else body
        written = result if answer.structured is None else answer.structured
        await asyncio.to_thread(functions.check_output, tool, written)
        return result

    async def _find(
        self, request: Request, agent: Peer, call: ToolCall, value: Mapping[str, Any] | None, *, uri: str
    ) -> Mapping[str, Any]:
        verified = caller(request)
        self._permission.check(verified, agent.host, call.tool, value, uri=uri)
        return await self._functions.find(
            agent, call, lambda tool: self._permission.policy.may(verified, agent.host, tool)
        )

    def _call(self, request: Request, work: Work) -> tuple[Peer, ToolCall]:
        agent = self._agents[self._agentlets.find(work.agent)]
        call = ToolCall(
            work.function,
            work.input,
            work.seconds,
            self._tracing.traceparent(self._tracing.trace(request)),
            caller=digest(caller(request)),
            task=work.task,
        )
        return agent, call
