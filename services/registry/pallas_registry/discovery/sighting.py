"""The answer of discovery about an agent, and the interface of every source of such answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from pallas_contract.documents.reason import OK, Reason

STALE = Reason("NameUnresolved", "name resolution fails, using the last known addresses")


EndpointKind = Literal["agent", "mcp", "sse", "get", "tcp"]
"""An agent, asked for its own health; or a service, asked by one of the questions of `launch.service_check`."""


class Endpoint(NamedTuple):
    """One replica: the URL to ask, and the IP to connect to where the URL's host stands for several."""

    url: str
    ip: str | None = None
    kind: EndpointKind = "agent"

    @property
    def label(self) -> str:
        """The name of the replica on the status page and in reasons."""
        return self.ip or urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class Sighting:
    """The endpoints of one agent. `problem` says why there is none, or why they may be old.

    `unsure` tells a resolver that failed from a name that is gone. `missing` says that there should be more endpoints.
    `absence` is the supervisor's word about an agent that is not up (documents.absence).
    """

    endpoints: tuple[Endpoint, ...] = ()
    problem: Reason = OK
    unsure: bool = False
    missing: Reason = OK
    absence: Reason = OK
    ready: bool = True
    """False where Kubernetes calls none of the endpoints ready: the registry reaches them, and callers do not."""


OnSighting = Callable[[str, Sighting], None]
"""Called with an agent and the news about it."""


class Discovery(Protocol):
    """A source of sightings; a sweep asks for each agent once.

    `undeclared` are addresses found beside those of the agents: known to be there, never asked anything.
    """

    undeclared: tuple[str, ...]

    async def sweep(self, agents: Sequence[str], on_sighting: OnSighting) -> None:
        """Call `on_sighting(agent, sighting)` once for each of `agents`, as soon as it is known."""
