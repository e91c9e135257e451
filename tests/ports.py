"""Ports and address ranges for tests that run side by side: each worker of pytest-xdist has its own share.

What is given here is claimed as the plugin's fleets claim theirs, so that neither takes what is the other's.
"""

from __future__ import annotations

import atexit
import os
import random
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Network
from itertools import cycle

from pallas_testing.project.claims import Claims

_LANE = int(os.environ.get("PALLAS_TEST_LANE", "0"))
"""Which of the runs of pytest this is that go on side by side (tools/test), each with workers of the same names."""
_LANES = 4
_BELOW_EPHEMERAL = (*range(20_000, 24_000), *range(25_000, 30_000))
"""Not the ports that the system gives to outgoing connections: one of those could take a port of ours meanwhile. Nor
those of the examples, which a person may have running, nor a cluster's NodePorts, from 30,000 on."""
_CLAIMED: deque[socket.socket] = deque()
"""Claims of the last ports: each is long in use, or was never to be, before it is given up."""
_AT_ONCE = 200
_SHARES = Claims()


def worker() -> tuple[int, int]:
    """Return the number of this worker, from 0, and how many there are."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return int(name.removeprefix("gw")), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@cache
def _shuffled() -> Iterator[int]:
    """Return this worker's share again and again, so that no port comes twice within a few tests."""
    number, workers = worker()
    share = _BELOW_EPHEMERAL[_LANE::_LANES][number::workers]
    return cycle(random.sample(share, len(share)))


def free_port() -> int:
    """Return a port of this machine that nobody listens on, and that no other worker returns."""
    for port in _shuffled():
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            claim.bind(("127.0.0.1", port))
            _CLAIMED.append(claim)
            if len(_CLAIMED) > _AT_ONCE:
                _CLAIMED.popleft().close()
            return port
        claim.close()
    raise AssertionError("a cycle has no end")


def free_ports(count: int) -> list[int]:
    """Return `count` such ports, all different."""
    return [free_port() for _ in range(count)]


@atexit.register
def give_back() -> None:
    """Close what is still claimed: who ends with an open socket is warned of it, at length."""
    while _CLAIMED:
        _CLAIMED.pop().close()
    _SHARES.close()


@cache
def pool() -> IPv4Network:
    """Return the part of the default pool for the container networks of this worker's fleets.

    Docker refuses a network that overlaps with one of another fleet.
    """
    return _SHARES.pool()
