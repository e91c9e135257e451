"""A port -> the processes that listen there, as far as /proc shows them (Linux only), and what to do about them."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pallas_contract import names

_OF_CONTAINERS = frozenset({"docker-proxy", "rootlesskit"})
"""Programs that listen on the published ports of containers, for Docker and for one without root."""
_LISTENS = "0A"
"""TCP_LISTEN in the column `st` of /proc/net/tcp (proc_net_tcp of the kernel's documentation)."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A process that has a listening socket; `pid` is 0 and `name` empty where it is another user's."""

    pid: int = 0
    name: str = ""
    member: str = ""
    """The run and the name of the member it is, or was started by: its `names.ENV_RUN`."""
    fleet: str = ""
    """The agents.yaml of that member."""

    def __str__(self) -> str:
        if not self.pid:
            return "a program of another user"
        member = f": `{self.member.rpartition('/')[2]}`" if self.member else ""
        fleet = f" of {self.fleet}" if self.member and self.fleet else ""
        return f"{self.name} (pid {self.pid}{member}{fleet})"


def listeners(port: int, proc: Path = Path("/proc")) -> list[Listener]:
    """Return the processes that listen on `port` of any address, by pid; none where the system does not tell."""
    inodes = {inode for table in ("tcp", "tcp6") for inode in _inodes(proc / "net" / table, port)}
    if not inodes:
        return []
    owners = list(_owners(inodes, proc))
    of_members = {inode for listener, own in owners if listener.member for inode in own}
    # the supervisor, which has handed a member its socket down, has it too
    others = [listener for listener, own in owners if listener.member or not own <= of_members]
    return sorted(others, key=lambda listener: listener.pid) or [Listener()]


def all_of(holders: Sequence[Listener], config: Path) -> bool:
    """Return whether a port is had by members of the fleet file at `config`, by whatever path, and by nobody else."""
    file = os.path.realpath(config)
    return bool(holders) and all(holder.fleet and os.path.realpath(holder.fleet) == file for holder in holders)


def remedy(port: int, holders: Sequence[Listener]) -> str:
    """Return what to do about a port that others have."""
    container = f"`docker ps --filter publish={port}`"
    if any(holder.name in _OF_CONTAINERS for holder in holders):
        return f"a container has it, {container} says which: stop that, or change the port"
    if not holders:  # a fleet that is starting holds its ports without listening, and no table shows who does
        return f"stop what has it (`ss -ltnp sport = :{port}`; or a `pallas` that is starting), or change the port"
    if any(not holder.pid for holder in holders):
        return f"stop it (`sudo ss -ltnp sport = :{port}`; where it is a container, {container}), or change the port"
    fleets = {holder.fleet if holder.member else "" for holder in holders}
    if len(fleets) == 1 and all(fleets):
        return f"a fleet that runs has it, `pallas stop -f {shlex.quote(*fleets)}` ends that: do so, or change the port"
    return "stop it, or change the port"


def _inodes(table: Path, port: int) -> Iterator[str]:
    """Yield the inode of each socket in `table` that listens on `port`."""
    with contextlib.suppress(OSError):
        for line in table.read_text("ascii").splitlines()[1:]:
            columns = line.split()
            if columns[3] == _LISTENS and int(columns[1].rpartition(":")[2], 16) == port:
                yield columns[9]


def _owners(inodes: set[str], proc: Path) -> Iterator[tuple[Listener, set[str]]]:
    """Yield each process that has some of the sockets, with these."""
    links = {f"socket:[{inode}]" for inode in inodes}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # another user's, or gone
            if own := links.intersection(map(_link, (folder / "fd").iterdir())):
                yield _listener(folder), own


def _link(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except OSError:  # closed since it was listed
        return ""


def _listener(folder: Path) -> Listener:
    variables = (folder / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    environ = dict(variable.partition("=")[::2] for variable in variables)
    return Listener(
        pid=int(folder.name),
        name=(folder / "comm").read_text("utf-8", "replace").strip(),
        member=environ.get(names.ENV_RUN, ""),
        fleet=environ.get(names.ENV_AGENTS_CONFIG, ""),
    )
