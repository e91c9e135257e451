"""Packages without what their `__init__` imports for others: of the MCP SDK its client and its high-level server.

`import mcp.shared` runs `mcp/__init__.py`, which imports everything. Some 15 MiB of that a gateway never uses.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

SDK = ("mcp", "mcp.server")
"""Packages of which the gateway imports modules alone."""


class _Lean(ModuleType):
    """A package whose `__init__` is run once something of its own is asked for, not with its first module."""

    def __getattr__(self, name: str) -> Any:
        if self.__spec__ is None or self.__spec__.loader is None or name.startswith("__"):
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def install(*packages: str) -> None:
    """Have `packages` imported lean from now on, parents first; one that is imported already stays as it is."""
    for name in packages:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None:
            continue
        module = _Lean(name)
        module.__spec__ = spec
        module.__loader__ = spec.loader
        module.__file__ = spec.origin
        module.__package__ = name
        module.__path__ = list(spec.submodule_search_locations or ())
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
