"""Where the registry may go to probe agents that registered: only where agents.yaml lets it, by address, every time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from pallas_contract.documents.reason import NOT_FOUND, OK, UNRESOLVED, Reason
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery.dns import CONFIRMATIONS, PAUSE, TIMEOUT, Address, Resolve, Sleep, forbidden
from pallas_registry.discovery.resolver import NotFound, Unresolved
from pallas_registry.discovery.sighting import STALE, Endpoint, Sighting

NOT_ALLOWED = Reason("AddressNotAllowed", "its addresses are not among those that registry.registration.reach allows")


class Reach:
    """The host names and networks of `registry.registration.reach`."""

    def __init__(self, written: Sequence[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._names: set[str] = set()
        for each in written:
            try:
                self._networks.append(ip_network(each))
            except ValueError:
                self._names.add(each.lower())

    def __bool__(self) -> bool:
        return bool(self._networks or self._names)

    def host(self, url: str) -> bool:
        """Whether the host of `url` may be asked at all; a name that is not listed may have addresses that are."""
        host = (urlsplit(url).hostname or "").lower()
        try:
            return self.address(ip_address(host), "")
        except ValueError:
            return host in self._names or bool(self._networks)

    def address(self, address: Address, host: str) -> bool:
        """Whether `address`, to which `host` resolved, may be connected to.

        A name that is listed may point anywhere but back at the registry's own machine: whoever keeps its records must
        not choose what the registry talks to there. Link-local and multicast addresses are nobody's agents.
        """
        if forbidden(address):
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if any(address in network for network in self._networks):
            return True
        return host.lower() in self._names and (not address.is_loopback or host.lower() == "localhost")


class Outside:
    """Finds the addresses of URLs that agents registered; a lost answer of DNS changes nothing."""

    def __init__(self, resolve: Resolve, *, sleep: Sleep = asyncio.sleep, bound: Bound = asyncio.timeout) -> None:
        self._resolve, self._sleep, self._bound = resolve, sleep, bound
        self._last: dict[str, tuple[Endpoint, ...]] = {}

    async def sweep(self, urls: Mapping[str, str], reach: Reach, tell: Callable[[str, str, Sighting], None]) -> None:
        """Call `tell(agent, url, sighting)` once for each entry of `urls`, agent -> URL."""
        wanted = set(urls.values())
        self._last = {url: found for url, found in self._last.items() if url in wanted}

        async def look(agent: str, url: str) -> None:
            tell(agent, url, await self._look(url, reach))

        await asyncio.gather(*(look(agent, url) for agent, url in urls.items()))

    async def _look(self, url: str, reach: Reach) -> Sighting:
        host = urlsplit(url).hostname or ""
        for left in reversed(range(CONFIRMATIONS + 1)):
            try:
                async with self._bound(TIMEOUT):
                    found = await self._resolve(host)
            except NotFound:
                missing = Sighting(problem=NOT_FOUND)
            except (Unresolved, TimeoutError):
                last = self._last.get(url, ())
                missing = Sighting(last, STALE if last else UNRESOLVED, unsure=True)
            else:
                return self._sighting(url, found, reach)
            if left and url in self._last:
                await self._sleep(PAUSE)
            else:
                break
        return missing

    def _sighting(self, url: str, addresses: Iterable[str], reach: Reach) -> Sighting:
        host = urlsplit(url).hostname or ""
        usable = sorted(each for each in addresses if reach.address(ip_address(each), host))
        self._last[url] = tuple(Endpoint(url, each) for each in usable)
        return Sighting(self._last[url], OK if usable else NOT_ALLOWED)
