"""The ports of a fleet: all of them held before anything starts, and each for its member as long as `pallas` runs."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pallas_agent_runtime.local import guardian
from pallas_agent_runtime.local.programs import Member
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.source import Source
from pallas_contract.launch import listeners
from pallas_contract.launch.listeners import Listener
from pallas_contract.problems import Problem
from pallas_service.http import sockets

FindListeners = Callable[[int], Sequence[Listener]]
"""The processes that listen on a port."""


class Port(Protocol):
    """The port of one member as its keeper sees it."""

    def hand_over(self) -> int | None:
        """Return the file descriptor that the member inherits; None for one that opens its port itself."""

    def take_back(self) -> None:
        """Hold the port and refuse connections, now that the member has ended."""

    def stranger(self) -> str:
        """Return the program that answers on this port and is not the member; empty where there is none."""

    def close(self) -> None:
        """Let the port go."""


class HeldPort:
    """A port that is held from before the fleet starts, until it is closed."""

    def __init__(self, member: Member, find: FindListeners = listeners.listeners) -> None:
        """Hold the port of `member`.

        Raises:
            CannotListen: somebody else has it, or we may not.
        """
        self._address, self.number = address(member)
        # A service is somebody's own program, and knows no inherited socket.
        self._inherits = member.kind != "service"
        self._mark = member.env.get(guardian.RUN, "")
        self._find = find
        self._socket: socket.socket | None = sockets.reserve(self._address, self.number)

    def hand_over(self) -> int | None:
        if self._inherits:
            return self._socket.fileno() if self._socket else None
        self.close()
        return None

    def take_back(self) -> None:
        if self._socket:
            sockets.refuse(self._socket)
            return
        with contextlib.suppress(sockets.CannotListen):  # somebody was quicker: the member will say so
            self._socket = sockets.reserve(self._address, self.number)

    def stranger(self) -> str:
        if self._inherits or not self._mark:  # on a socket of ours nobody else answers
            return ""
        found = self._find(self.number)
        return "" if any(listener.member == self._mark for listener in found) else ", ".join(map(str, found))

    def close(self) -> None:
        """Let the port go."""
        if self._socket:
            self._socket.close()
            self._socket = None


def address(member: Member) -> tuple[str, int]:
    """Return where `member` listens."""
    host, _, port = member.env[names.ENV_BIND].rpartition(":")
    return host.strip("[]"), int(port)


@contextlib.contextmanager
def held(
    members: Iterable[Member], tree: Source, find: FindListeners = listeners.listeners
) -> Iterator[tuple[Mapping[str, Port], list[Problem]]]:
    """Yield the held port of each member, and a problem, at its place in agents.yaml, per port that cannot be had."""
    ports: dict[str, Port] = {}
    problems = []
    with contextlib.ExitStack() as stack:
        for member in members:
            try:
                port = HeldPort(member, find)
            except sockets.CannotListen as refusal:
                problems.append(_problem(member, tree, refusal, find))
            else:
                stack.callback(port.close)
                ports[member.name] = port
        yield ports, sorted(problems)


def taken(
    members: Iterable[Member], tree: Source, config: Path, find: FindListeners = listeners.listeners
) -> list[Problem]:
    """Return a problem per port that others have now; members of the fleet file at `config` are no others."""
    members = list(members)
    with held(members, tree, find) as (ports, problems):
        numbers = {tree.where(*member.place): address(member)[1] for member in members if member.name not in ports}
    return [problem for problem in problems if not listeners.all_of(find(numbers[problem.where]), config)]


def _problem(member: Member, tree: Source, refusal: sockets.CannotListen, find: FindListeners) -> Problem:
    _, port = address(member)
    holders = find(port)
    message = f"{member.name} {refusal}{f' by {", ".join(map(str, holders))}' if holders else ''}"
    return tree.problem(*member.place, message=message, hint=listeners.remedy(port, holders), code=Code.PORT_TAKEN)
