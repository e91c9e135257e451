"""Can every member listen where agents.yaml says? Asked before anything starts, all ports at once."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem

Obstacle = Callable[[str, int], str]
"""Why nobody could listen on (address, port); empty when somebody could."""


def obstacle(address: str, port: int) -> str:
    """Return why nobody can listen there: bind and let go."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections of an earlier run that still linger do not count, somebody listening does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return (error.strerror or type(error).__name__).lower()
    return ""


def problems(members: Iterable[Member], tree: Source, obstacle: Obstacle = obstacle) -> list[Problem]:
    """Return a problem per port that cannot be had, at its place in agents.yaml."""
    busy = []
    for member in members:
        address, _, port = member.env[names.ENV_BIND].rpartition(":")
        if reason := obstacle(address.strip("[]"), int(port)):
            message = f"{member.name} cannot listen on {address}:{port}: {reason}"
            hint = f"stop what listens there (`ss -ltnp sport = :{port}` shows it), or change the port"
            busy.append(tree.problem(*member.place, message=message, hint=hint))
    return sorted(busy)
