"""Explicit subnets for the networks of a fleet.

Docker's default pools hold about 31 networks for all projects of a host, and a fleet of four agents has 17.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from ipaddress import IPv4Network

_OVERHEAD = 3
"""Network, gateway and broadcast address."""
_UNIT = 8
"""Addresses of the smallest subnet."""


class PoolExhausted(Exception):
    """The pool is too small for the fleet."""


def allocate(fleet: str, members: Mapping[str, int], pool: IPv4Network) -> dict[str, IPv4Network]:
    """Return a subnet for each network name, large enough for its number of members.

    A network's place follows from its own name and the fleet's, so adding an agent moves (nearly) no other network:
    moving one would make compose recreate the containers on it.

    Raises:
        PoolExhausted: not all of them fit.
    """
    taken: set[int] = set()
    ranges: dict[str, IPv4Network] = {}
    # in one order, so that two that want the same place settle it alike in every run
    for name in sorted(members):
        prefix = 32 - (max(members[name] + _OVERHEAD, _UNIT) - 1).bit_length()
        ranges[name] = subnet = _place(f"{fleet}/{name}", prefix, pool, taken)
        taken.update(_units(int(subnet.network_address), 1 << (32 - prefix)))
    return ranges


def _place(key: str, prefix: int, pool: IPv4Network, taken: set[int]) -> IPv4Network:
    size = 1 << (32 - prefix)
    slots = pool.num_addresses // size
    first = int(pool.network_address)
    start = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
    for step in range(slots):
        base = first + (start + step) % slots * size
        # looked up in a set, as numbers: subnets compared one by one would cost the square of their number
        if taken.isdisjoint(_units(base, size)):
            return IPv4Network((base, prefix))
    raise PoolExhausted(key)


def _units(base: int, size: int) -> range:
    """Return the numbers of the smallest subnets in the one of `size` addresses that begins at `base`."""
    return range(base // _UNIT, (base + size) // _UNIT)
