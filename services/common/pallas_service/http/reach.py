"""Addresses that may be connected to on behalf of those who are not in agents.yaml (`registry.registration.reach`)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from pallas_contract import names

_METADATA = tuple(map(ip_network, names.CLOUD_METADATA))
_TRANSLATED = tuple(map(IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""Prefixes behind which the last 32 bits are an IPv4 address."""
_BROADCAST = IPv4Address("255.255.255.255")

Address = IPv4Address | IPv6Address


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


def carried(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 one leads to: mapped, compatible, NAT64 (RFC 6052, 8215), 6to4 or Teredo."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if any(address in network for network in _TRANSLATED) and int(address) > 1:  # :: and ::1 are what they are
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def forbidden(address: Address) -> bool:
    """Return True for addresses that are nobody's agent, but may be a cloud's metadata service: never asked.

    Loopback is not among them: where a name of the file leads is its owner's business. Of agents that registered
    themselves `registration.reach` asks more.
    """
    address = carried(address) or address
    special = address.is_multicast or address.is_unspecified or address == _BROADCAST
    return special or any(address in network for network in _METADATA)
