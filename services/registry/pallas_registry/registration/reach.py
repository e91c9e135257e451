"""The addresses at which agents that registered may be probed: where agents.yaml says so, checked each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from pallas_contract.documents.reason import NOT_FOUND, OK, UNRESOLVED, Reason
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery.dns import CONFIRMATIONS, PAUSE, TIMEOUT, Address, Resolve, carried, forbidden
from pallas_registry.discovery.resolver import NotFound, Unresolved
from pallas_registry.discovery.sighting import STALE, Endpoint, Sighting
from pallas_registry.timing import Sleep

NOT_ALLOWED = Reason("AddressNotAllowed", "its addresses are not among those that registry.registration.reach allows")


class Reach:
    """The host names and networks of `registry.registration.reach`."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._names: set[str] = set()
        for entry in entries:
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._names.add(entry.lower())

    def __bool__(self) -> bool:
        return bool(self._networks or self._names)

    def host(self, url: str) -> bool:
        """Return True when the host of `url` may be asked; a name that is not listed may have addresses that are."""
        host = (urlsplit(url).hostname or "").lower()
        try:
            return self.address(ip_address(host), "")
        except ValueError:
            return host in self._names or bool(self._networks)

    def address(self, address: Address, host: str) -> bool:
        """Return True when `address`, to which `host` resolved, may be connected to.

        A name that is listed may point anywhere but back at the registry's own machine: whoever keeps its records must
        not choose what the registry talks to there. Link-local and multicast addresses are nobody's agents.
        """
        if forbidden(address):
            return False
        # by address, and it is the address that is connected to: a name can point elsewhere a second later
        behind = carried(address)
        if any((behind or address) in network for network in self._networks):
            return True
        if behind and behind.is_global and any(address in network for network in self._networks):
            return True  # a translator's own network; what it leads to inside of it is not meant by that
        address = behind or address
        return host.lower() in self._names and (not address.is_loopback or host.lower() == "localhost")


class UrlDiscovery:
    """Discovery of the URLs that agents registered, by DNS; a lost answer of it changes nothing."""

    def __init__(self, resolve: Resolve, *, sleep: Sleep = asyncio.sleep, bound: Bound = asyncio.timeout) -> None:
        self._resolve = resolve
        self._sleep = sleep
        self._bound = bound
        self._last: dict[str, tuple[Endpoint, ...]] = {}

    async def sweep(
        self, urls: Mapping[str, str], reach: Reach, on_sighting: Callable[[str, str, Sighting], None]
    ) -> None:
        """Call `on_sighting(agent, url, sighting)` once for each entry of `urls`, agent -> URL."""
        current = set(urls.values())
        self._last = {url: endpoints for url, endpoints in self._last.items() if url in current}

        async def look_up(agent: str, url: str) -> None:
            on_sighting(agent, url, await self._look_up(url, reach))

        await asyncio.gather(*(look_up(agent, url) for agent, url in urls.items()))

    async def _look_up(self, url: str, reach: Reach) -> Sighting:
        host = urlsplit(url).hostname or ""
        for remaining in reversed(range(CONFIRMATIONS + 1)):
            try:
                async with self._bound(TIMEOUT):
                    addresses = await self._resolve(host)
            except NotFound:
                missing = Sighting(problem=NOT_FOUND)
            except (Unresolved, TimeoutError):
                last = self._last.get(url, ())
                missing = Sighting(last, STALE if last else UNRESOLVED, unsure=True)
            else:
                return self._sighting(url, addresses, reach)
            if remaining and url in self._last:
                await self._sleep(PAUSE)
            else:
                break
        return missing

    def _sighting(self, url: str, addresses: Iterable[str], reach: Reach) -> Sighting:
        host = urlsplit(url).hostname or ""
        usable = sorted(ip for ip in addresses if reach.address(ip_address(ip), host))
        self._last[url] = tuple(Endpoint(url, ip) for ip in usable)
        return Sighting(self._last[url], OK if usable else NOT_ALLOWED)
