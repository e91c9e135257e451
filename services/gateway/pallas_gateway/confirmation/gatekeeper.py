"""What becomes of a call that must be confirmed: it goes on once, or is answered with the reason why not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from pallas_gateway.confirmation.confirmations import Store, TooMany, Wanted
from pallas_service.sqlite_file import CannotStore

Reason = Literal["confirmation_required", "confirmation_refused", "confirmation_unavailable"]
Noted = Callable[[str, str, Mapping[str, Any]], Awaitable[bool]]
"""Takes the id of a confirmation, what becomes of it, and what it is about; returns whether that is recorded."""


class Unconfirmed(Exception):
    """A call that does not go on; `data` has the id of its confirmation and the seconds until that expires."""

    def __init__(self, reason: Reason, text: str, data: Mapping[str, str | int] | None = None) -> None:
        super().__init__(text)
        self.reason: Reason = reason
        self.data = dict(data or {})


async def nothing(id_: str, state: str, about: Mapping[str, Any]) -> bool:
    """Record nothing: there is no audit."""
    return True


class Gatekeeper:
    """The confirmations in front of calls; `noted` is told of each question before its caller is answered."""

    def __init__(self, confirmations: Store, noted: Noted = nothing) -> None:
        self._confirmations = confirmations
        self._noted = noted

    async def let_through(self, wanted: Wanted) -> str:
        """Return the id of the confirmation that this call has consumed.

        Raises:
            Unconfirmed: there was none.
        """
        if not wanted.by:
            raise Unconfirmed("confirmation_refused", "nobody but its own caller may confirm this call")
        try:
            answer = await self._confirmations.redeem(wanted)
        except TooMany as error:
            raise Unconfirmed("confirmation_unavailable", str(error)) from None
        except CannotStore:
            raise Unconfirmed("confirmation_unavailable", "confirmations cannot be stored at present") from None
        about = {"caller": wanted.name, "tenant": wanted.tenant, "agent": wanted.agent, "name": wanted.tool}
        about = {key: value for key, value in about.items() if value}
        if answer.state == "consumed":
            await self._note(answer.id, "consumed", about)
            return answer.id
        data: dict[str, str | int] = {"confirmation": answer.id, "expires_in": answer.seconds}
        if answer.state == "refused":
            raise Unconfirmed("confirmation_refused", "another caller has refused this call", data)
        await self._note(answer.id, "asked", about)
        text = "another caller must confirm this call: send the same call again once it is confirmed"
        raise Unconfirmed("confirmation_required", text, data)

    async def _note(self, id_: str, state: str, about: Mapping[str, Any]) -> None:
        if not await self._noted(id_, state, about):
            raise Unconfirmed("confirmation_unavailable", "the audit cannot be written")
