"""The addresses at which agents that registered may be probed: where agents.yaml says so, checked each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from pallas_contract.documents.reason import NOT_FOUND, OK, UNRESOLVED, Reason
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery.dns import CONFIRMATIONS, PAUSE, TIMEOUT, Resolve
from pallas_registry.discovery.resolver import NotFound, Unresolved
from pallas_registry.discovery.sighting import STALE, Endpoint, Sighting
from pallas_registry.timing import Sleep
from pallas_service.http.reach import Reach

MOST = 16
"""Addresses of one agent that are probed: whoever keeps its records may write thousands, and all agents that registered
share a few probes at once."""
NOT_ALLOWED = Reason("AddressNotAllowed", "its addresses are not among those that registry.registration.reach allows")


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
        usable = sorted(ip for ip in addresses if reach.address(ip_address(ip), host))[:MOST]
        self._last[url] = tuple(Endpoint(url, ip) for ip in usable)
        return Sighting(self._last[url], OK if usable else NOT_ALLOWED)
