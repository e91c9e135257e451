"""Requests to `/mcp` within the limits of their tenant; watchers are told of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import structlog
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from pallas_contract import names
from pallas_gateway.data_plane import shares
from pallas_gateway.data_plane.checks import Checks, Stopped
from pallas_gateway.data_plane.plane import TIMEOUT
from pallas_gateway.data_plane.record import Call, Outcome, Record, Watcher
from pallas_gateway.own.failures import Failed
from pallas_gateway.own.permission import Permission
from pallas_gateway.policy.policy import principal_name
from pallas_gateway.telemetry import spans
from pallas_gateway.tenants import Allowance, Exceeded, Tenants
from pallas_service.access.caller import Caller, caller
from pallas_service.http.disconnect import HungUp, attended

Context = ServerRequestContext[Any, Any]
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as far as it is recorded: its method, and the tool, function or URI that it names.

    `agent` is the host name of the member that it is about, `trace` the id of its trace where that is known.
    """

    method: str
    name: str
    agent: str = names.GATEWAY
    arguments: object = field(default=None, repr=False)
    trace: str = ""


class Admission:
    """The limits of all tenants; a request has `timeout` seconds, or those of its tenant where they are fewer.

    `checks` are what each call passes, nothing where there are none.
    """

    def __init__(
        self,
        tenants: Tenants,
        timeout: float = TIMEOUT,
        watchers: Collection[Watcher] = (),
        checks: Checks | None = None,
    ) -> None:
        self._checks = checks or Checks()
        self.permission = Permission(self._checks, tenants)
        self._tenants = tenants
        self._timeout = timeout
        self._watchers = tuple(watchers)

    def seconds(self, allowance: Allowance) -> float:
        """Return how long a request of this tenant may take."""
        return min(self._timeout, allowance.timeout)

    def seconds_of(self, verified: Caller | None, tenant: str) -> float:
        """Return how long a request of the verified caller in `tenant` may take; raises what `allowance` raises."""
        return self.seconds(self.allowance(verified, tenant))

    def allowance(self, verified: Caller | None, tenant: str) -> Allowance:
        """Return the allowance of `tenant`, which must be that of the verified caller where there is one.

        Raises:
            Failed: it is not, or there is none of that name.
        """
        allowance = self._tenants.of(verified) if verified else self._tenants.named(tenant)
        if allowance is None or allowance.name != tenant:
            raise Failed("unknown_tenant", f"Tenant not found: {tenant}")
        return allowance

    def tenant(self, verified: Caller | None) -> str:
        """Return the tenant of a request that names none; empty where it cannot be known."""
        allowance = self._tenants.of(verified) if verified else self._tenants.only()
        return allowance.name if allowance else ""

    def owner(self, verified: Caller | None) -> str:
        """Return whose share of what all have together a request takes; empty where nobody is verified."""
        return shares.owner(verified, self._tenants.of(verified))

    async def counted[T](
        self,
        request: Request | None,
        asked: Asked,
        work: Callable[[], Awaitable[T]],
        *,
        tenant: str = "",
        common: bool = False,
    ) -> T:
        """Return the result of `work` within the limits of the caller's tenant; watchers are told of it.

        What is `common` is the same for all: who is not verified needs no tenant for it, and only the time is limited.
        """
        verified = caller(request)
        allowance = self._tenants.of(verified) if verified else self._tenants.named(tenant)
        call = Call(
            asked.agent,
            verified.name if verified else "",
            asked.method,
            asked.name,
            tenant=allowance.name if allowance else "",
            trace=asked.trace,
            own=True,
            principal=principal_name(verified) if verified else "",
            arguments=self._checks.digest(asked.arguments),
        )
        started = time.perf_counter()
        outcome: Outcome = "hung_up"
        member: str | None = None
        for watcher in self._watchers:
            watcher.begin(call)

        async def recorded() -> T:
            call.decision = await self._recorded(call)
            return await work()

        try:
            with spans.request(asked.method, _traceparent(request), _attributes(call), asked.trace):
                result = await attended(
                    request,
                    self._limited(allowance, recorded, nobody=common and not (verified or tenant), tenant=tenant),
                )
            outcome = "answered"
            return result
        except Failed as failure:
            outcome = failure.reason
            member = failure.member
            raise
        except MCPError as error:
            outcome = "hung_up" if isinstance(error, HungUp) else "malformed"
            raise
        except Exception:
            outcome = "failed"
            log.exception("own tool failed", method=asked.method, agent=asked.agent)
            # its text is about our insides, and for the log
            raise Failed("failed", "the gateway could not answer") from None
        finally:
            record = Record(call, outcome, 200, time.perf_counter() - started, member)
            for watcher in self._watchers:
                watcher.end(record)

    async def _recorded(self, call: Call) -> int:
        try:
            return await self._checks.recorded(call)
        except Stopped as stop:
            raise Failed(stop.reason, str(stop)) from None

    async def _limited[T](
        self, allowance: Allowance | None, work: Callable[[], Awaitable[T]], *, nobody: bool, tenant: str
    ) -> T:
        if allowance is None and not nobody:
            raise Failed("unknown_tenant", f"Tenant not found: {tenant}" if tenant else "Tenant not found: name it")
        seconds = self.seconds(allowance) if allowance else self._timeout
        try:
            async with self._tenants.using(allowance) if allowance else nullcontext():
                async with asyncio.timeout(seconds) as deadline:
                    return await work()
        except Exceeded as error:
            raise Failed(error.reason, f"Rate limit exceeded: {error}", error.retry_after) from None
        except TimeoutError:
            if not deadline.expired():
                raise
            raise Failed("timeout", f"Timeout: no answer in {seconds:g} s") from None


def _traceparent(request: Request | None) -> str:
    return request.headers.get("traceparent", "") if request is not None else ""


def _attributes(call: Call) -> dict[str, str | None]:
    about = call.name if call.method in ("tools/call", spans.EXECUTE) else None
    return {
        spans.TOOL: about,
        spans.TENANT: call.tenant,
        spans.AGENT: None if call.agent == names.GATEWAY else call.agent,
    }
