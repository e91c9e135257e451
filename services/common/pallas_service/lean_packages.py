"""Packages without what their `__init__` imports for others: of the MCP SDK its client and its high-level server.

`import mcp.shared` runs `mcp/__init__.py`, which imports everything. Some 15 MiB of that a gateway never uses. uvicorn
brings its command line and its supervisors of processes along, structlog draws tracebacks with rich where it is there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

SDK = ("mcp", "mcp.server")
"""Packages of which the gateway imports modules alone."""
SERVER = ("uvicorn",)
"""Packages of which a service imports modules alone."""
OPTIONAL = ("greenlet", "python_multipart", "rich", "uvicorn.main")
"""Modules that packages use where they are there, and of which the gateway uses nothing: tracebacks in colour for
structlog, forms for starlette, a signal handler for sse_starlette. With what they import some 5 MiB."""
_DEFINED = {("uvicorn", "Config"): "uvicorn.config", ("uvicorn", "Server"): "uvicorn.server"}
"""Names that modules of a package ask the package for -> where they are defined."""


class _Lean(ModuleType):
    """A package whose `__init__` is run once something of its own is asked for, not with its first module."""

    def __getattr__(self, name: str) -> Any:
        if self.__spec__ is None or self.__spec__.loader is None or name.startswith("__"):
            raise AttributeError(name)
        if module := _DEFINED.get((self.__name__, name)):
            return getattr(importlib.import_module(module), name)
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


@contextmanager
def without(*packages: str) -> Iterator[None]:
    """Have `packages` look absent to what is imported inside, but for those that are imported already."""
    hidden = [package for package in packages if package not in sys.modules]
    for package in hidden:
        sys.modules[package] = None  # type: ignore[assignment] # how Python itself says so (import system, 5.3.1)
    try:
        yield
    finally:
        for package in hidden:
            del sys.modules[package]
