"""Services of the file: by DNS in containers, at their own ports as processes; of those that cannot be asked, why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pallas_contract.documents.reason import OK, Reason
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch.addresses import Placement
from pallas_contract.launch.service_check import ServiceCheck, service_check
from pallas_contract.probe.probe import Bound
from pallas_registry.discovery.dns import DnsDiscovery, Resolve
from pallas_registry.discovery.sighting import Endpoint, OnSighting, Sighting
from pallas_registry.discovery.static import read_absences
from pallas_registry.timing import Sleep


class ServiceDiscovery:
    """Discovery of services; each has one address, that of its container or, on Kubernetes, of its Service."""

    def __init__(
        self,
        fleet: Callable[[], ResolvedFleet],
        placement: Placement,
        resolve: Resolve,
        *,
        absences: Path | None = None,
        sleep: Sleep,
        bound: Bound,
    ) -> None:
        """Take `fleet`, asked at each sweep, and `absences`, the file in which a supervisor says who is not up."""
        self.undeclared: tuple[str, ...] = ()
        self._fleet = fleet
        self._placement: Placement = placement
        self._absences = absences
        self._checks: dict[str, ServiceCheck] = {}
        """Those of one sweep: the file may change during it."""
        self._dns = DnsDiscovery(resolve, endpoint=self._endpoint, sleep=sleep, bound=bound)

    async def sweep(self, agents: Sequence[str], on_sighting: OnSighting) -> None:
        asked = []
        fleet = self._fleet()
        self._checks = {service: service_check(fleet, service, self._placement) for service in agents}
        absences = read_absences(self._absences)
        for service in agents:
            if obstacle := self._checks[service].obstacle:
                # unsure: that nobody asks says nothing about the service
                on_sighting(service, Sighting(problem=Reason("NotProbed", f"not probed: {obstacle}"), unsure=True))
            elif self._placement == "local":
                on_sighting(service, Sighting((self._endpoint(service),), absence=absences.get(service, OK)))
            else:
                asked.append(service)
        await self._dns.sweep(asked, on_sighting)

    def _endpoint(self, service: str) -> Endpoint:
        check = self._checks[service]
        return Endpoint(check.url, kind=check.kind)
