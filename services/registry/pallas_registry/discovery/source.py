"""The source of discovery that the settings ask for."""

from __future__ import annotations

from collections.abc import Callable

from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch.addresses import Placement
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery.dns import DnsDiscovery, Resolve
from pallas_registry.discovery.resolver import Resolver
from pallas_registry.discovery.services import ServiceDiscovery
from pallas_registry.discovery.sighting import Discovery
from pallas_registry.discovery.static import StaticDiscovery
from pallas_registry.settings import Settings
from pallas_registry.timing import Sleep


def from_settings(settings: Settings, *, default: Callable[[str], str], bound: Bound) -> Discovery:
    """Return DNS in containers, and elsewhere the addresses of the settings.

    `default` gives the `host:port` of an agent without an address; `bound` limits the time of a look-up.
    """
    if _is_dns(settings):
        return DnsDiscovery(Resolver(), domain=settings.domain, pods_domain=settings.pods_domain, bound=bound)
    return StaticDiscovery(settings.addresses or {}, default, settings.absences)


def of_services(
    settings: Settings,
    fleet: Callable[[], ResolvedFleet],
    resolve: Resolve | None = None,
    *,
    sleep: Sleep,
    bound: Bound,
) -> Discovery:
    """Return where the services of `fleet` are: where DNS finds the agents, it finds them too.

    `resolve` None is the system's DNS.
    """
    placement: Placement = "container" if _is_dns(settings) else "local"
    lookup = resolve or Resolver()
    return ServiceDiscovery(fleet, placement, lookup, absences=settings.absences, sleep=sleep, bound=bound)


def _is_dns(settings: Settings) -> bool:
    """Return whether members have names: one that is started by hand beside processes is told no addresses either."""
    return settings.addresses is None and settings.placement == "container"
