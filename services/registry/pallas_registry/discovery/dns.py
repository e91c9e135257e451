"""Agents by the address records of their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import batched

from pallas_contract import names
from pallas_contract.documents.reason import NOT_FOUND, OK, UNRESOLVED, Reason
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery import resolver
from pallas_registry.discovery.resolver import NotFound, Unresolved
from pallas_registry.discovery.sighting import STALE, Endpoint, OnSighting, Sighting
from pallas_registry.timing import Sleep
from pallas_service.http.reach import forbidden

TIMEOUT = 2.0
"""Seconds one look-up may take before it counts as failed."""
CONFIRMATIONS = 2
PAUSE = 0.25
"""Seconds between a failed look-up and its confirmation."""
TOGETHER = resolver.LIMIT
"""Agents looked up together: among more, waiting for a turn would be taken for a resolver that does not answer."""

NOT_ALLOWED = Reason("AddressNotAllowed", "resolves only to addresses that are never asked")

EndpointOf = Callable[[str], Endpoint]
Resolve = Callable[[str], Awaitable[frozenset[str]]]
"""Raises NotFound or Unresolved."""


def agent_endpoint(agent: str) -> Endpoint:
    """Return the endpoint of an agent in a container of its own, without its address."""
    return Endpoint(f"http://{names.slug(agent)}:{names.CONTAINER_PORT}{names.MCP_PATH}")


class DnsDiscovery:
    """Discovery by DNS; every record is a replica.

    Docker's embedded DNS answers for a name it does not know by asking the host's servers. On an internal network it
    may not, and says SERVFAIL (EAI_AGAIN) at once; behind a dead server it says nothing. Neither means that DNS is
    down. So a name that fails while another one resolves in the same sweep is not there; when none resolves, the
    registry's own name decides, and if that fails too the last known addresses stay, marked as old. DNS may also
    have gone or come back between two look-ups, so one that was there is looked up once more, between two of the
    registry's own name: it is gone where these are answered.
    """

    def __init__(
        self,
        resolve: Resolve,
        *,
        domain: str = "",
        pods_domain: str = "",
        control: str = names.REGISTRY,
        endpoint: EndpointOf = agent_endpoint,
        sleep: Sleep = asyncio.sleep,
        bound: Bound = asyncio.timeout,
    ) -> None:
        """`domain` holds a record per replica under each agent's host name; without it the name itself has them.

        Where `domain` has only those that are ready, `pallas-pods-NAME` in `pods_domain` has the others too. They are
        looked up only where none is ready: so a roll-out shows nothing, and a pod that never becomes ready says why.
        `endpoint` gives what is asked of a member, still without the address.
        """
        self._resolve = resolve
        self._control = control
        self._endpoint = endpoint
        self._sleep = sleep
        self._bound = bound
        self._suffix = f".{domain}" if domain else ""
        self._pods_suffix = f".{pods_domain}" if pods_domain else ""
        self._domain = domain
        self._last: dict[str, Sighting] = {}
        self._unmatched: frozenset[str] = frozenset()
        self.undeclared: tuple[str, ...] = ()

    async def sweep(self, agents: Sequence[str], on_sighting: OnSighting) -> None:
        declared = set(agents)
        self._last = {agent: sighting for agent, sighting in self._last.items() if agent in declared}
        await self._sweep(agents, on_sighting)
        if self._domain:
            await self._find_undeclared()

    async def _find_undeclared(self) -> None:
        """Note addresses of the whole domain that are no agent's, twice in a row: one may come between two look-ups."""
        try:
            addresses = await self._resolve_once(self._domain)
        except NotFound:
            addresses = frozenset()
        except Unresolved:
            return
        declared = {endpoint.ip for sighting in self._last.values() for endpoint in sighting.endpoints}
        unmatched = frozenset(addresses - declared)
        self.undeclared = tuple(sorted(unmatched & self._unmatched))
        self._unmatched = unmatched

    async def _sweep(self, agents: Sequence[str], on_sighting: OnSighting) -> None:
        undecided: list[str] = []
        alive = False
        for start in range(0, len(agents), TOGETHER):
            batch = agents[start : start + TOGETHER]
            decided = await asyncio.gather(*(self._decide(agent, on_sighting) for agent in batch))
            undecided += [agent for agent, clear in zip(batch, decided, strict=True) if not clear]
            alive = alive or any(decided) or await self._answers(self._control)
            if not alive:  # the others would only take as long to fail
                undecided += agents[start + TOGETHER :]
                break
        if alive:
            undecided = await self._decide_again(undecided, on_sighting)
        for agent in undecided:
            last = self._last.get(agent, Sighting())
            on_sighting(agent, replace(last, problem=STALE if last.endpoints else UNRESOLVED, unsure=True))

    async def _decide_again(self, agents: Sequence[str], on_sighting: OnSighting) -> list[str]:
        """Report agents whose names got no answer while others did; return those of which that may be DNS's fault."""
        doubted = []
        for agent in agents:
            if self._last.get(agent, Sighting()).endpoints:
                doubted.append(agent)
            else:
                self._report_missing(agent, on_sighting)
        undecided: list[str] = []
        for batch in batched(doubted, TOGETHER, strict=False):
            answering = await self._answers(self._control)
            decided = await asyncio.gather(*(self._decide(agent, on_sighting, confirmations=0) for agent in batch))
            answering = answering and await self._answers(self._control)
            for agent in (agent for agent, clear in zip(batch, decided, strict=True) if not clear):
                if answering:
                    self._report_missing(agent, on_sighting)
                else:
                    undecided.append(agent)
        return undecided

    async def _decide(self, agent: str, on_sighting: OnSighting, confirmations: int = CONFIRMATIONS) -> bool:
        """Look an agent up and report it; False when nothing can be said about it, or about the resolver."""
        try:
            sighting = await self._look_up(agent, confirmations)
        except NotFound:
            self._report_missing(agent, on_sighting)
            return True  # a server that says no is a server that works
        except Unresolved:
            return False
        self._last[agent] = sighting
        on_sighting(agent, sighting)
        return True

    def _report_missing(self, agent: str, on_sighting: OnSighting) -> None:
        self._last.pop(agent, None)
        on_sighting(agent, Sighting(problem=NOT_FOUND))

    async def _look_up(self, agent: str, confirmations: int) -> Sighting:
        """Look an agent up: its replicas that are ready, or where it has none and others are known, those."""
        name = names.slug(agent)
        try:
            return self._sighting(agent, await self._confirm(agent, name + self._suffix, confirmations))
        except NotFound:
            if not self._pods_suffix:
                raise
        pods = await self._resolve_once(names.PODS_PREFIX + name + self._pods_suffix)
        return replace(self._sighting(agent, pods), ready=False)

    async def _confirm(self, agent: str, host: str, confirmations: int) -> frozenset[str]:
        """Resolve the name of an agent. Losing one that was there takes more: one lost packet flips nothing."""
        last = self._last.get(agent)
        for _ in range(confirmations if last and last.ready else 0):
            try:
                return await self._resolve_once(host)
            except (NotFound, Unresolved):
                await self._sleep(PAUSE)
        return await self._resolve_once(host)

    def _sighting(self, agent: str, addresses: Iterable[str]) -> Sighting:
        endpoint = self._endpoint(agent)
        usable = sorted(ip for ip in addresses if not forbidden(ip_address(ip)))
        endpoints = tuple(endpoint._replace(ip=ip) for ip in usable)
        return Sighting(endpoints, OK if endpoints else NOT_ALLOWED)

    async def _resolve_once(self, host: str) -> frozenset[str]:
        try:
            async with self._bound(TIMEOUT):
                return await self._resolve(host)
        except TimeoutError:
            raise Unresolved from None

    async def _answers(self, host: str) -> bool:
        """Return whether DNS says anything of a name: a server that says no is a server that works."""
        try:
            await self._resolve_once(host)
        except NotFound:
            return True
        except Unresolved:
            return False
        return True
