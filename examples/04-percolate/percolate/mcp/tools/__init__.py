"""The tools of seed 002, as functions that a test may call without a server. `use` says which memory they have."""

from __future__ import annotations

from percolate.memory.embeddings import Embedder, StandIn
from percolate.memory.store import Store

_STORE: list[Store] = []
_EMBEDDER: list[Embedder] = [StandIn()]


def use(store: Store, embedder: Embedder) -> None:
    """Have all tools use this memory from now on."""
    _STORE[:] = [store]
    _EMBEDDER[:] = [embedder]


def store() -> Store:
    """Return the memory: an empty one that is gone with the process, where nobody has named one."""
    if not _STORE:
        _STORE.append(Store(":memory:"))
    return _STORE[0]


def embedder() -> Embedder:
    """Return who embeds queries."""
    return _EMBEDDER[0]
