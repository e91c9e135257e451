"""Address blocks of NetworkPolicies, never with the addresses where a cloud hands out credentials."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from pallas_contract import names

WORLD = ("0.0.0.0/0", "::/0")


def ip_block(cidr: str) -> dict[str, Any]:
    """Return a policy's peer for `cidr`, without the metadata services in it.

    Raises:
        ValueError: it is not a network.
    """
    network = ip_network(cidr)
    metadata = [hole for hole in map(ip_network, names.CLOUD_METADATA) if hole.network_address in network]
    # Kubernetes refuses an exception that is the whole block; the registry never asks such an address anyway.
    inside = [str(hole) for hole in metadata if hole.prefixlen > network.prefixlen]
    return {"ipBlock": {"cidr": str(network)} | ({"except": inside} if inside else {})}
