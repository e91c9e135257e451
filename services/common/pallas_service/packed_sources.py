"""Sources of an image's packages, each compressed in its place: `module.py.gz` where `module.py` was.

Bytecode is what runs; the source is read for a traceback, by `inspect`, and where there is no bytecode. So packages are
whole, at a quarter of the size of their sources, and a module says of itself what it always did: `__file__` and the
names in tracebacks end in `.py`. `tools/shrink.py --pack` writes these files, and a `.pth` file that calls `install` in
each Python of the environment. Folders without such a file are found as usual, and a plain `module.py` goes first.
"""

from __future__ import annotations

import os
import sys
from importlib import machinery

# Every Python of an image imports this module, each health check, too: these three would be a quarter of its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType
    from typing import Any

SUFFIX = ".py.gz"
_PACKING = ".gz"
_GZIP = 31
"""The window of zlib that expects the head and checksum of gzip."""


class PackedLoader(machinery.SourceFileLoader):
    """Loads a module from its bytecode, or from its packed source."""

    def __init__(self, fullname: str, path: str) -> None:
        """Take the path of the packed source, and go by that of the source."""
        super().__init__(fullname, path.removesuffix(_PACKING))

    def path_stats(self, path: str) -> dict[str, Any]:
        """Return the time of the packed source, and no size: bytecode has that of the source unpacked."""
        return {**super().path_stats(path + _PACKING), "size": None}

    def get_data(self, path: str) -> bytes:
        """Return the bytes of a file; of the source they are unpacked.

        Raises:
            OSError: it cannot be read, or it is damaged.
        """
        if path != self.path:
            return super().get_data(path)
        import zlib  # noqa: PLC0415 - hardly any process reads a source

        try:
            return zlib.decompress(super().get_data(path + _PACKING), _GZIP)
        except zlib.error as error:
            raise OSError(f"{path}{_PACKING} is damaged: {error}") from None


_LOADERS = (
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    (PackedLoader, [SUFFIX]),
)


class Finder:
    """Finds the modules of one folder, packed or not."""

    def __init__(self, path: str) -> None:
        """Find those of `path`."""
        self.path = path
        self._files = machinery.FileFinder(path, *_LOADERS)

    def find_spec(self, name: str, target: ModuleType | None = None) -> machinery.ModuleSpec | None:
        """Return how to import it, by the name that its source has unpacked; None where it is not here."""
        spec = self._files.find_spec(name, target)
        if spec is not None and isinstance(spec.loader, PackedLoader):
            spec.origin = spec.loader.path
        return spec

    def invalidate_caches(self) -> None:
        """Look into the folder again."""
        self._files.invalidate_caches()

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """Yield name and whether it is a package, for pkgutil, which knows of no packed ones."""
        modules: dict[str, bool] = {}
        for entry in _entries(self.path):
            if name := _module(entry):
                modules.setdefault(name, False)
            elif "." not in entry and "__init__" in map(_module, _entries(os.path.join(self.path, entry))):
                modules[entry] = True
        for name, is_package in sorted(modules.items()):
            if name != "__init__":
                yield prefix + name, is_package


def _module(file: str) -> str:
    """Return the name of the module that a file has; empty where it has none."""
    suffixes = sorted((suffix for _, known in _LOADERS for suffix in known), key=len, reverse=True)
    return next((name for suffix in suffixes if (name := file.removesuffix(suffix)) != file), "")


def _entries(path: str) -> Sequence[str]:
    try:
        return os.listdir(path)
    except OSError:
        return ()


def _is_packed(path: str, entry: str) -> bool:
    """Return whether it is a packed package: a namespace such as `opentelemetry` has nothing else."""
    return "." not in entry and os.path.exists(os.path.join(path, entry, f"__init__{SUFFIX}"))


_roots: set[str] = set()


def _hook(root: str) -> Callable[[str], Finder]:
    """Return what makes the finders beneath `root`: a function, since beartype asks each hook for its name."""

    def packed_sources_hook(path: str) -> Finder:
        if path.startswith(root):
            entries = _entries(path)
            if any(entry.endswith(SUFFIX) for entry in entries) or any(_is_packed(path, entry) for entry in entries):
                return Finder(path)
        raise ImportError(path)  # nothing in it is packed: the import system asks the next hook

    return packed_sources_hook


def install(root: str = os.path.dirname(os.path.dirname(__file__))) -> None:
    """Find packed sources beneath `root` from now on: before others, who would take their folders."""
    if root not in _roots:
        _roots.add(root)
        sys.path_hooks.insert(0, _hook(root))
        for path in [path for path in sys.path_importer_cache if path.startswith(root)]:
            del sys.path_importer_cache[path]
