"""The addresses that clients are told, against those that the fleet listens on."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem


def unreachable(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a warning where clients are told a host and the fleet listens on loopback, as process and container alike.

    With `public_url` there is a proxy, which finds the fleet on this machine.
    """
    if fleet.host in names.LOCAL_HOSTS or fleet.public_url:
        return
    published = [fleet.registry.publish, *(agent.publish for agent in fleet.agents.values())]
    if any(value is True or (isinstance(value, str) and ip_address(value).is_loopback) for value in published):
        message = f"clients are told to call {fleet.host}, but ports are published on 127.0.0.1 only"
        hint = "set `defaults.publish` and `registry.publish` to the address to listen on, for example 0.0.0.0"
        yield tree.problem("host", message=message, hint=hint, level="warning", code=Code.UNREACHABLE_HOST)
