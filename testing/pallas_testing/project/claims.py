"""Ports and address ranges of this machine that one fleet has for itself, whatever else is tested beside it.

A claim is a UDP socket on 127.0.0.1 that is bound and never used: the fleets listen on TCP, so it takes nothing away;
no two processes, workers of pytest-xdist or users can have the same one; and the system takes it back however its
process ends.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Iterator
from contextlib import suppress
from ipaddress import IPv4Network

PORTS = range(20_000, 30_000)
"""Below the ports that the system gives to outgoing connections: one of those could take a port of ours meanwhile. And
below 30,000, where a Kubernetes on this machine has its NodePorts: kube-proxy takes connections to them away."""
_FIRST_POOL_CLAIM = 19_600
"""The number by which the first share of the pool is claimed."""
POOL = IPv4Network("10.213.0.0/16")
"""The default `networks.pool` of a fleet; each fleet under test has one of its 16 shares."""


class NothingFree(Exception):
    """All ports, or all shares of the pool, are taken; the text says which."""


class Claims:
    """Ports and address ranges, held until they are closed."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def ports(self, count: int) -> list[int]:
        """Return `count` ports that nobody listens on and nobody else has claimed.

        Raises:
            NothingFree: there are no more.
        """
        candidates = self._free_ports()
        try:
            return [next(candidates) for _ in range(count)]
        except StopIteration:
            raise NothingFree(f"no free port is left between {PORTS.start} and {PORTS.stop}") from None

    def pool(self, taken: Collection[IPv4Network] = ()) -> IPv4Network:
        """Return a share of the default pool that overlaps none of the networks in `taken`.

        Raises:
            NothingFree: there is none.
        """
        for number, share in enumerate(POOL.subnets(new_prefix=20)):
            if not any(share.overlaps(network) for network in taken) and self._claim(_FIRST_POOL_CLAIM + number):
                return share
        raise NothingFree(f"no share of {POOL} is free: other fleets have them, see `docker network ls`")

    def close(self) -> None:
        """Give everything back."""
        for claim in self._sockets:
            claim.close()
        self._sockets.clear()

    def _free_ports(self) -> Iterator[int]:
        for port in random.sample(PORTS, len(PORTS)):
            if _unused(port) and self._claim(port):
                yield port

    def _claim(self, number: int) -> bool:
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", number))
        except OSError:
            claim.close()
            return False
        self._sockets.append(claim)
        return True


def _unused(port: int) -> bool:
    with suppress(OSError), socket.create_server(("", port)):
        return True
    return False
