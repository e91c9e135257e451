"""The source of discovery that the settings ask for."""

from __future__ import annotations

from collections.abc import Callable

from pallas_contract.probe.probe import Bound
from pallas_registry.discovery.dns import DnsDiscovery
from pallas_registry.discovery.resolver import Resolver
from pallas_registry.discovery.sighting import Discovery
from pallas_registry.discovery.static import StaticDiscovery
from pallas_registry.settings import Settings


def from_settings(settings: Settings, *, default: Callable[[str], str], bound: Bound) -> Discovery:
    """Return DNS, or the addresses of the settings where there are some.

    `default` gives the `host:port` of an agent without an address; `bound` limits the time of a look-up.
    """
    if settings.addresses is None:
        return DnsDiscovery(Resolver(), domain=settings.domain, bound=bound)
    return StaticDiscovery(settings.addresses, default, settings.absences)
