"""A port of this machine -> the process that answers there, as /proc shows it; Linux only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
"""TCP_LISTEN in the column `st` of /proc/net/tcp (proc_net_tcp of the kernel's documentation)."""
_PARENT = 1
"""Index of the parent in /proc/PID/stat, counted behind the name of the program, which may hold anything."""

_FORKS = b"pallas_agent_runtime.local.warm.forker"
"""What the process that agents are forked from is called by, and a fork until it is an agent (decision 0020)."""


def listener(port: int, proc: Path = Path("/proc")) -> int | None:
    """Return the process that listens on `port`, None where there is none.

    A supervisor may hold the socket of its child as well: of several it is the one that no other descends from. What an
    agent is forked from holds it for a moment, and answers nobody.
    """
    links = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _inodes(proc / "net" / table, port)}
    holders = {int(folder.name) for folder in proc.glob("[0-9]*") if links and _has_one(folder / "fd", links)}
    ancestors = {ancestor for pid in holders for ancestor in _ancestors(pid, proc)}
    return min((pid for pid in holders - ancestors if not _forks(pid, proc)), default=None)


def _forks(pid: int, proc: Path) -> bool:
    with suppress(OSError):
        return _FORKS in (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
    return False


def _inodes(table: Path, port: int) -> Iterator[str]:
    with suppress(OSError):
        for line in table.read_text("ascii").splitlines()[1:]:
            columns = line.split()
            if columns[3] == _LISTENS and int(columns[1].rpartition(":")[2], 16) == port:
                yield columns[9]


def _has_one(descriptors: Path, links: set[str]) -> bool:
    with suppress(OSError):  # another user's, or gone
        return any(_link(descriptor) in links for descriptor in descriptors.iterdir())
    return False


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # closed since
        return ""


def _ancestors(pid: int, proc: Path) -> Iterator[int]:
    with suppress(OSError):
        while pid > 1:
            pid = int((proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_PARENT])
            yield pid
