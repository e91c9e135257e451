"""Two snapshots -> who has to go, who has to come, and who starts again where it was. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pallas_agent_runtime.local import ports
from pallas_agent_runtime.local.watching.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of members, each in start order. One that moves to another port is among those that go and that come."""

    gone: tuple[str, ...] = ()
    come: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gone or self.come or self.restarted)

    def __str__(self) -> str:
        """Return the changes in words: `starting scout; restarting desk`."""
        moved = [name for name in self.come if name in self.gone]
        rows = {
            "stopping": [name for name in self.gone if name not in moved],
            "starting": [name for name in self.come if name not in moved],
            "moving": moved,
            "restarting": list(self.restarted),
        }
        return "; ".join(f"{verb} {', '.join(members)}" for verb, members in rows.items() if members)


def between(old: Snapshot, new: Snapshot) -> Changes:
    """Return what has to happen for the members of `old` to become those of `new`."""
    both = [name for name in new.members if name in old.members]
    moved = {name for name in both if _place(old, name) != _place(new, name)}
    return Changes(
        gone=tuple(name for name in old.members if name not in new.members or name in moved),
        come=tuple(name for name in new.members if name not in old.members or name in moved),
        restarted=tuple(name for name in both if name not in moved and old.marks[name] != new.marks[name]),
    )


def _place(snapshot: Snapshot, name: str) -> tuple[str, tuple[str, int]]:
    """Return what a port is held for: another kind of member inherits it in another way."""
    member = snapshot.members[name]
    return member.kind, ports.address(member)
