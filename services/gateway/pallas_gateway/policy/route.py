"""The way to a member behind the gateway, and who may know of it.

Of this the settings are made, which are also checked by themselves: nothing that serves is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pallas_service.access.caller import Caller

Kind = Literal["agent", "service"]


@dataclass(frozen=True, slots=True)
class Route:
    """A member behind the gateway: its MCP URL, and the token that the gateway presents there."""

    url: str
    token: str = field(default="", repr=False)
    kind: Kind = "agent"
    callers: frozenset[str] | None = None
    """Agents that alone may call it, by the names of their static tokens; None: everybody who passes the gate."""

    def admits(self, verified: Caller | None) -> bool:
        """Return whether the caller may know of it at all."""
        if self.callers is None:
            return True
        # an issuer may call anybody by the name of an agent
        return verified is not None and verified.issuer is None and verified.name in self.callers
