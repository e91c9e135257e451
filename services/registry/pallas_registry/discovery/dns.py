"""Where the agents are. One interface, two sources: DNS in containers, a list where the fleet is processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from pallas_contract import names
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery import resolver
from pallas_registry.discovery.resolver import NotFound, Unresolved

TIMEOUT = 2.0
"""Seconds one look-up may take before it counts as failed."""
CONFIRMATIONS = 2
PAUSE = 0.25
"""Seconds between a failed look-up and its confirmation."""
TOGETHER = resolver.LIMIT
"""Agents looked up together: among more, waiting for a turn would be taken for a resolver that does not answer."""

_METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16")))
"""Where clouds answer machines about themselves, beside the link-local addresses."""
_BROADCAST = IPv4Address("255.255.255.255")

NOT_FOUND = "name not found"
STALE = "name resolution fails, using the last known addresses"
UNRESOLVED = "name resolution fails"

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Awaitable[frozenset[str]]]
"""Raises NotFound or Unresolved."""
Sleep = Callable[[float], Awaitable[None]]


class Endpoint(NamedTuple):
    """One replica: the URL to ask, and the IP to connect to where the URL's host stands for several."""

    url: str
    ip: str | None = None

    @property
    def label(self) -> str:
        """What people are shown."""
        return self.ip or urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class Sighting:
    """What discovery knows of one agent. `problem` says why there is no endpoint, or why they may be old.

    `unsure` tells a resolver that failed from a name that is gone. `missing` says that there should be more endpoints.
    """

    endpoints: tuple[Endpoint, ...] = ()
    problem: str = ""
    unsure: bool = False
    missing: str = ""


Tell = Callable[[str, Sighting], None]


class Discovery(Protocol):
    """Looks for agents; a sweep asks for each once.

    `strangers` are addresses found beside those of the agents: known to be there, never asked anything.
    """

    strangers: tuple[str, ...]

    async def sweep(self, agents: Sequence[str], tell: Tell) -> None:
        """Call `tell(agent, sighting)` once for each of `agents`, as soon as it is known."""


class Listed:
    """Agents at known addresses: the supervisor's word, else the ports of agents.yaml."""

    def __init__(self, addresses: Mapping[str, str], otherwise: Callable[[str], str]) -> None:
        """`addresses` maps agent -> `host:port`; `otherwise` gives that of an agent added to the file since."""
        self.strangers: tuple[str, ...] = ()
        self._addresses, self._otherwise = addresses, otherwise

    async def sweep(self, agents: Sequence[str], tell: Tell) -> None:
        for agent in agents:
            authority = self._addresses.get(agent) or self._otherwise(agent)
            tell(agent, Sighting((Endpoint(f"http://{authority}{names.MCP_PATH}"),)))


class Dns:
    """Agents by the address records of their names; every record is a replica.

    Docker's embedded DNS answers for a name it does not know by asking the host's servers. On an internal network it
    may not, and says SERVFAIL (EAI_AGAIN) at once; behind a dead server it says nothing. Neither means that DNS is
    down. So a name that fails while another one resolves in the same sweep is not there; when none resolves, the
    registry's own name decides, and if that fails too the last known addresses stay, marked as old.
    """

    def __init__(
        self,
        resolve: Resolve,
        *,
        domain: str = "",
        control: str = names.REGISTRY,
        sleep: Sleep = asyncio.sleep,
        bound: Bound = asyncio.timeout,
    ) -> None:
        """`domain` holds a record per replica under each agent's host name; without it the name itself has them."""
        self._resolve, self._control, self._sleep, self._bound = resolve, control, sleep, bound
        self._suffix = f".{domain}" if domain else ""
        self._domain = domain
        self._last: dict[str, tuple[Endpoint, ...]] = {}
        self._doubtful: frozenset[str] = frozenset()
        self.strangers: tuple[str, ...] = ()

    async def sweep(self, agents: Sequence[str], tell: Tell) -> None:
        wanted = set(agents)
        self._last = {agent: known for agent, known in self._last.items() if agent in wanted}
        await self._sweep(agents, tell)
        if self._domain:
            await self._look_for_strangers()

    async def _look_for_strangers(self) -> None:
        """Addresses of the whole domain that are no agent's, twice in a row: one may have come between two look-ups."""
        try:
            found = await self._once(self._domain)
        except NotFound:
            found = frozenset()
        except Unresolved:
            return
        known = {endpoint.ip for endpoints in self._last.values() for endpoint in endpoints}
        unknown = frozenset(found - known)
        self.strangers, self._doubtful = tuple(sorted(unknown & self._doubtful)), unknown

    async def _sweep(self, agents: Sequence[str], tell: Tell) -> None:
        undecided: list[str] = []
        alive = False
        for start in range(0, len(agents), TOGETHER):
            some = agents[start : start + TOGETHER]
            answered = await asyncio.gather(*(self._decide(agent, tell) for agent in some))
            undecided += [agent for agent, clear in zip(some, answered, strict=True) if not clear]
            alive = alive or any(answered) or await self._answers(self._control)
            if not alive:  # the others would only take as long to fail
                undecided += agents[start + TOGETHER :]
                break
        for agent in undecided:
            if alive:
                self._missing(agent, tell)
            else:
                last = self._last.get(agent, ())
                tell(agent, Sighting(last, STALE if last else UNRESOLVED, unsure=True))

    async def _decide(self, agent: str, tell: Tell) -> bool:
        """Look an agent up and tell; False when nothing can be said about it, or about the resolver."""
        try:
            found = await self._look(agent)
        except NotFound:
            self._missing(agent, tell)
            return True  # a server that says no is a server that works
        except Unresolved:
            return False
        self._last[agent] = found.endpoints
        tell(agent, found)
        return True

    def _missing(self, agent: str, tell: Tell) -> None:
        self._last.pop(agent, None)
        tell(agent, Sighting(problem=NOT_FOUND))

    async def _look(self, agent: str) -> Sighting:
        """Look an agent up. Losing one that was there takes confirmations: one lost packet flips nothing."""
        for _ in range(CONFIRMATIONS if agent in self._last else 0):
            try:
                return _sighting(agent, await self._once(names.slug(agent) + self._suffix))
            except (NotFound, Unresolved):
                await self._sleep(PAUSE)
        return _sighting(agent, await self._once(names.slug(agent) + self._suffix))

    async def _once(self, host: str) -> frozenset[str]:
        try:
            async with self._bound(TIMEOUT):
                return await self._resolve(host)
        except TimeoutError:
            raise Unresolved from None

    async def _answers(self, host: str) -> bool:
        try:
            return bool(await self._once(host))
        except (NotFound, Unresolved):
            return False


def forbidden(address: Address) -> bool:
    """Addresses that are nobody's agent, but may be a cloud's metadata service: never asked.

    Loopback is not among them: where a name of the file leads is its owner's business. Of agents that registered
    themselves `registration.reach` asks more.
    """
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    odd = address.is_link_local or address.is_multicast or address.is_unspecified
    return odd or address in _METADATA or address == _BROADCAST


def _sighting(agent: str, addresses: Iterable[str]) -> Sighting:
    url = f"http://{names.slug(agent)}:{names.CONTAINER_PORT}{names.MCP_PATH}"
    usable = sorted(ip for ip in addresses if not forbidden(ip_address(ip)))
    endpoints = tuple(Endpoint(url, ip) for ip in usable)
    return Sighting(endpoints, "" if endpoints else "resolves only to addresses that are never asked")
