"""The tools of seed 002, as functions that a test may call without a server. `use` says what they work with."""

from __future__ import annotations

from dataclasses import dataclass, field

from percolate.agentlets import runners
from percolate.agentlets.runners import Runner
from percolate.memory.embeddings import Embedder, StandIn
from percolate.memory.sqlite import SqliteStore
from percolate.memory.store import Store


@dataclass(frozen=True, slots=True)
class Tools:
    """The memory, who embeds queries, and who thinks for agents; by default nothing that outlives the process."""

    store: Store = field(default_factory=lambda: SqliteStore(":memory:"))
    embedder: Embedder = field(default_factory=StandIn)
    runner: Runner = field(default_factory=runners.StandIn)


_USED: list[Tools] = []


def use(tools: Tools) -> None:
    """Have all tools work with this from now on."""
    _USED[:] = [tools]


def used() -> Tools:
    """Return what they work with."""
    if not _USED:
        _USED.append(Tools())
    return _USED[0]
