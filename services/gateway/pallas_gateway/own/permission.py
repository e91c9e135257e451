"""What a caller may have the gateway call for it, in the errors of its own tools (decision 0037)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pallas_contract.names import META_MODEL
from pallas_gateway.confirmation.confirmations import Asked
from pallas_gateway.data_plane.checks import Checks, Stopped
from pallas_gateway.data_plane.record import Call
from pallas_gateway.own.failures import Failed
from pallas_gateway.tenants import Tenants
from pallas_service.access.caller import Caller

_SHOWN = 80
"""Characters of a URI from outside that are shown."""


class Permission:
    """The policy in front of the agents and services that own tools call."""

    def __init__(self, checks: Checks | None = None, tenants: Tenants | None = None) -> None:
        self._checks = checks or Checks()
        self._tenants = tenants or Tenants()
        self.policy = self._checks.policy

    def check(
        self,
        caller: Caller | None,
        host: str,
        tool: str,
        arguments: Mapping[str, Any] | None,
        *,
        uri: str = "",
    ) -> None:
        """Check that `caller` may have `tool` of the agent or service `host` called; `uri` is how it names an agent.

        `arguments` are None where they are not known yet.

        Raises:
            Failed: it may not; an agent of which it may call nothing is like one that is not there.
        """
        decision = self.policy.decide(caller, host, tool, arguments)
        if decision.reason is None:
            return
        if decision.reason == "unknown_agent" and uri:
            raise Failed("unknown_agent", f"Agent not found: {uri[:_SHOWN]}")
        if decision.reason == "unknown_agent":
            raise Failed("not_granted", f"`{tool}` is not granted to this caller")
        failure = Failed(decision.reason, decision.text)
        failure.error.data["field"] = decision.field
        raise failure

    async def confirm(
        self, caller: Caller | None, host: str, tool: str, arguments: Mapping[str, Any], *, model: str = ""
    ) -> None:
        """Consume the confirmation of a call that `check` lets through, where it needs one: right before it is made.

        Raises:
            Failed: there is none.
        """
        decision = self.policy.decide_granted(caller, host, tool)
        allowance = self._tenants.of(caller)
        tenant = allowance.name if allowance else ""
        call = Call(host, caller.name if caller else "", "tools/call", tool, tenant=tenant)
        more = {"_meta": {META_MODEL: model}} if model else {}
        try:
            await self._checks.confirmed(caller, call, decision, Asked(arguments, more))
        except Stopped as stop:
            raise Failed(stop.reason, str(stop), more=stop.data) from None
