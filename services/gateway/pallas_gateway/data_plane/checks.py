"""What a call passes right before it is passed on: its confirmation, where it needs one, and its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pallas_gateway.confirmation.confirmations import Asked, Wanted
from pallas_gateway.confirmation.gatekeeper import Gatekeeper, Unconfirmed
from pallas_gateway.data_plane.errors import Reason
from pallas_gateway.data_plane.record import Board, Call, Ledger, Unrecorded
from pallas_gateway.policy.policy import Decision, Policy, principal_name
from pallas_service.access.caller import Caller


class Stopped(Exception):
    """A call that is not passed on; `data` has more for the error's."""

    def __init__(self, reason: Reason, text: str, data: Mapping[str, str | int] | None = None) -> None:
        super().__init__(text)
        self.reason: Reason = reason
        self.data = data


@dataclass(frozen=True, slots=True)
class Checks:
    """The policy, the audit and the confirmations of a gateway; where one is not there, it holds nothing up."""

    policy: Policy = field(default_factory=Policy.open)
    ledger: Ledger | None = None
    gatekeeper: Gatekeeper | None = None
    board: Board | None = None

    def digest(self, arguments: object) -> str:
        """Return the digest of arguments for the audit, empty where there is none of either."""
        return self.ledger.digest(arguments) if self.ledger and arguments is not None else ""

    async def recorded(self, call: Call) -> int:
        """Return the number of the record that `call` is passed on, 0 where it needs none.

        Raises:
            Stopped: it cannot be recorded.
        """
        try:
            number = self.ledger.allowed(call) if self.ledger else 0
            if self.ledger:
                await self.ledger.kept(number)
        except Unrecorded as error:
            raise Stopped("unrecorded", str(error)) from None
        if self.board:
            self.board.passed_on(call)
        return number

    async def confirmed(self, caller: Caller | None, call: Call, decision: Decision, asked: Asked) -> None:
        """Consume the confirmation of a call, where `decision` asks for one; `call` has agent, tool and tenant.

        Raises:
            Stopped: there is none.
        """
        if decision.verdict != "confirm":
            return
        if self.gatekeeper is None or caller is None:
            raise Stopped("confirmation_required", "another caller must confirm this call, which cannot be done here")
        wanted = Wanted(
            caller=caller.identity,
            name=principal_name(caller),
            tenant=call.tenant,
            agent=call.agent,
            # the name of a tool has no space, so that what is none is never taken for one
            tool=call.name or "" if call.method == "tools/call" else f"{call.method} {call.name or ''}",
            asked=asked,
            policy=decision.version,
            by=decision.by,
        )
        try:
            await self.gatekeeper.let_through(wanted)
        except Unconfirmed as error:
            raise Stopped(error.reason, str(error), error.data) from None
