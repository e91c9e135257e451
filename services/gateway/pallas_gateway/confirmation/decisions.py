"""The word of those who may confirm: what waits for it, and what becomes of it, recorded before it is so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pallas_gateway.confirmation.confirmations import Store
from pallas_gateway.confirmation.gatekeeper import Noted, nothing
from pallas_service.sqlite_file import CannotStore

Decided = Literal["approved", "refused"]
STATES: dict[str, Decided] = {"approve": "approved", "refuse": "refused"}
"""Words of a decision, and the states that they lead to."""
VOID = "void"
"""What is recorded after a decision that came too late: the one before it counts, or none."""


class Decisions:
    """Decisions about `confirmations`; `noted` is told of each before it is so, `shown` once it is.

    All methods raise CannotStore.
    """

    def __init__(
        self,
        confirmations: Store,
        noted: Noted = nothing,
        shown: Callable[[str, str, Mapping[str, Any]], None] = lambda id_, state, about: None,
    ) -> None:
        self._confirmations = confirmations
        self._noted = noted
        self._shown = shown

    async def pending(self, approver: str) -> list[dict[str, Any]]:
        """Return what waits for the word of `approver`, as `Store.pending` does, named so that people can read it."""
        return [_readable(entry) for entry in await self._confirmations.pending(approver)]

    async def find(self, id_: str, approver: str) -> dict[str, Any] | None:
        """Return what waits for the word of `approver` under an id, with all of its arguments."""
        entry = await self._confirmations.find(id_, approver)
        return None if entry is None else _readable(entry)

    async def decide(self, id_: str, approver: str, state: Decided) -> bool:
        """Decide, once it is recorded that `approver` does, and return whether there was something to decide."""
        entry = await self._confirmations.find(id_, approver)
        if entry is None:
            return False
        about = {"caller": entry["caller"], "tenant": entry["tenant"], "agent": entry["agent"], "name": entry["tool"]}
        about = {"by": approver, **{key: value for key, value in about.items() if value}}
        if not await self._noted(id_, state, about):
            raise CannotStore("the audit cannot be written")
        if await self._confirmations.decide(id_, approver, state):
            self._shown(id_, state, about)
            return True
        await self._noted(id_, VOID, about)
        return False


def _readable(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry whose names are in ASCII, on one line: that of a resource is what the caller likes to call it."""
    return {**entry, **{key: json.dumps(entry[key])[1:-1].replace("`", r"\u0060") for key in ("caller", "tool")}}
