"""One function of one agent: found, given what its schema wants, and its answer checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from starlette.requests import Request

from pallas_contract import names
from pallas_gateway.data_plane.plane import digest
from pallas_gateway.own.agents.agentlets import SCHEME, Agentlets
from pallas_gateway.own.execution import functions
from pallas_gateway.own.execution.functions import Functions
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.peers import objects, peer
from pallas_gateway.own.peers.peer import Peer, ToolCall
from pallas_gateway.own.peers.registered import Registered
from pallas_gateway.own.permission import Permission
from pallas_gateway.own.tracing import Tracing
from pallas_service.access.caller import caller


@dataclass(frozen=True, slots=True)
class Work:
    """A call of `function` of the agent that is called `agent`, with `seconds` left; `task` is the id at every hop."""

    agent: str
    function: str
    input: Mapping[str, Any]
    task: str
    seconds: float
    hurried: bool = False
    """Whether the time is the caller's own choice, so that its end says nothing of the agent."""


@asynccontextmanager
async def _limited(work: Work) -> AsyncIterator[None]:
    """End what is within after the time of `work`, with `Failed`."""
    try:
        async with asyncio.timeout(work.seconds) as deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        failure = Failed("timeout", f"Timeout: no answer in {work.seconds:g} s")
        failure.member = "" if work.hurried else None
        raise failure from None


@dataclass(frozen=True, slots=True)
class Strangers:
    """Agents that registered themselves, and the client that goes nowhere but to them."""

    agents: Registered
    client: aiohttp.ClientSession


class Steps:
    """Functions of the agents behind the gateway, by host name: those of the file, and those that registered."""

    def __init__(
        self,
        client: aiohttp.ClientSession,
        tracing: Tracing,
        permission: Permission,
        *,
        agents: Mapping[str, Peer],
        agentlets: Agentlets,
        strangers: Strangers | None = None,
    ) -> None:
        self._client = client
        self._tracing = tracing
        self._permission = permission
        self._agents = agents
        self._agentlets = agentlets
        self._strangers = strangers
        self._functions = Functions()

    def host(self, agent: str) -> str:
        """Return the host name of an agent behind the gateway, else that of the gateway itself."""
        host = names.slug(agent)
        return host if host in self._agents or self._is_stranger(host) else names.GATEWAY

    async def check(self, request: Request, work: Work, *, with_input: bool) -> None:
        """Check that the caller may call such a function, that it is there, and that the input fits where it is known.

        Raises:
            MCPError: one of them is not so.
        """
        try:
            async with _limited(work):
                _, agent, tool = await self._find(request, work, work.input if with_input else None)
        except Failed as failure:
            if failure.member is None:  # the check is of a whole graph, and no call of one agent
                failure.member = self.host(work.agent)
            raise
        if with_input:
            await self._check(functions.check_input, agent, tool, work.input)

    async def execute(self, request: Request, work: Work) -> dict[str, Any]:
        """Return the result of a function.

        Raises:
            MCPError: there is none.
        """
        async with _limited(work):
            return await self._execute(request, work)

    async def _execute(self, request: Request, work: Work) -> dict[str, Any]:
        client, agent, tool = await self._find(request, work, work.input)
        await self._check(functions.check_input, agent, tool, work.input)
        await self._permission.confirm(caller(request), agent.host, work.function, work.input)
        answer = await peer.ask(client, agent, self._call(request, work, agent.host))
        if answer.failed:
            raise Failed("function_error", f"Agent function error: {answer.text}")
        body = objects.value(answer)
        result = {"answer": answer.text} if body is None else body
        written = result if answer.structured is None else answer.structured
        await self._check(functions.check_output, agent, tool, written)
        return result

    async def _check(
        self, check: Callable[..., None], agent: Peer, tool: Mapping[str, Any], value: Mapping[str, Any]
    ) -> None:
        await asyncio.to_thread(check, tool, value, is_stranger=self._is_stranger(agent.host))

    async def _find(
        self, request: Request, work: Work, value: Mapping[str, Any] | None
    ) -> tuple[aiohttp.ClientSession, Peer, Mapping[str, Any]]:
        """Return the agent of a call that is allowed with the input `value`, what reaches it, and its function."""
        host = self._host(work.agent)
        verified = caller(request)
        self._permission.check(verified, host, work.function, value, uri=work.agent)
        if self._strangers and self._is_stranger(host):
            client, agent = self._strangers.client, await self._strangers.agents.find(host)
        else:
            client, agent = self._client, self._agents[host]
        tool = await self._functions.find(
            client,
            agent,
            self._call(request, work, host),
            lambda tool: self._permission.policy.may(verified, host, tool),
        )
        return client, agent, tool

    def _host(self, uri: str) -> str:
        host = names.slug(uri.removeprefix(SCHEME))
        return host if self._is_stranger(host) else self._agentlets.find(uri)

    def _is_stranger(self, host: str) -> bool:
        return self._strangers is not None and host in self._strangers.agents

    def _call(self, request: Request, work: Work, host: str) -> ToolCall:
        return ToolCall(
            work.function,
            work.input,
            work.seconds,
            self._tracing.traceparent(self._tracing.trace(request)),
            # whose call it is concerns nobody outside of the fleet
            caller="" if self._is_stranger(host) else digest(caller(request)),
            task=work.task,
        )
