"""Modules of packages that are imported at their first use, where few or none of those who import them use them.

A module that is imported late is in `sys.modules` without its contents. Whoever asks for something of it has it loaded,
except for the importers that the table names: `from rich.syntax import Syntax` gives these a stand-in for the class,
which has the module loaded when it is called, subclassed or looked into. So everybody else, the code of a project
first, has the real thing, unless it takes the name from one of these importers. So no importer hands a class on;
a package that does is late itself, and its modules are imported without what its `__init__` imports for others.

Packages, and Python, are named with their version. With any other one, or where it cannot be told, all is imported as
usual.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

_PATIENCE = 60.0
"""Seconds that a thread waits for another one which loads the same module."""
_LOADING = "__pallas_loading__"
_ASKED_BY_TYPING = frozenset(
    {
        "__args__",
        "__origin__",
        "__parameters__",
        "__supertype__",
        "__typing_is_unpacked_typevartuple__",
        "__typing_subst__",
        "__typing_unpacked_tuple_args__",
    }
)
"""What annotations are asked for where they are written down: no class or function of the tables has any of it."""


@dataclass(frozen=True, slots=True)
class Late:
    """A module to be imported late."""

    module: str
    names: frozenset[str] = frozenset()
    """Functions and classes for which `importers` get a stand-in. Nobody catches or matches them."""
    importers: tuple[str, ...] = ()
    """Modules, or packages with a dot at the end."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Names that it only takes over from another module -> that module, which is imported in its place."""
    alone: frozenset[str] | None = None
    """The modules below it that are imported without it, where not all are: some that import each other in a circle can
    be begun with only where its own code does."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed distribution, as its folder of metadata says: `uvicorn-0.54.0.dist-info`."""

    name: str
    version: str
    modules: tuple[Late, ...]

    def is_beside(self, package: Path) -> bool:
        """Return whether it is this version that is installed beside the folder of its package."""
        return package.with_name(f"{self.name}-{self.version}.dist-info").is_dir()


@dataclass(frozen=True, slots=True)
class StandardLibrary(Distribution):
    """Modules of Python's own library, of the minor version that was looked at: `3.13`."""

    def is_beside(self, package: Path) -> bool:
        """Return whether it is this version that runs, and none of a project that has the same name."""
        running = f"{sys.version_info.major}.{sys.version_info.minor}"
        own = Path(importlib.machinery.__file__).parent.parent
        return running == self.version and own in (package, package.parent)


class _StandIn:
    """A function or class of a module that may not have been loaded yet."""

    def __init__(self, module: _LateModule, name: str) -> None:
        vars(self).update(_late_module=module, _late_name=name)

    def _late(self) -> Any:
        own = vars(self)
        return getattr(_current(own["_late_module"]), own["_late_name"])

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED_BY_TYPING:
            raise AttributeError(name)
        return getattr(self._late(), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._late()(*arguments, **named)

    def __getitem__(self, key: Any) -> Any:
        return self._late()[key]

    def __mro_entries__(self, _: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._late(),)

    def __instancecheck__(self, instance: object) -> bool:
        return self._has_kin(type(instance)) and isinstance(instance, self._late())

    def __subclasscheck__(self, subclass: type) -> bool:
        return self._has_kin(subclass) and issubclass(subclass, self._late())

    def _has_kin(self, kind: type) -> bool:
        """Return whether it may be of this class, which a module below the one that waits may have defined."""
        module: _LateModule = vars(self)["_late_module"]
        below = f"{module.__name__}."
        line = getattr(kind, "__mro__", ())
        return not _is_waiting(module) or any(f"{parent.__module__}.".startswith(below) for parent in line)

    def __or__(self, _: object) -> Any:
        return Any

    __ror__ = __or__

    def __repr__(self) -> str:
        own = vars(self)
        return f"<{own['_late_name']} of {own['_late_module'].__name__}, imported at its first use>"


@dataclass(slots=True)
class _Loading:
    """How a late module is loaded: by one thread, once."""

    late: Late
    lock: Any = field(default_factory=threading.RLock)
    under_way: bool = False


class _LateModule(ModuleType):
    """A module without its contents, until somebody asks for them."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__" and (loading := _own(self).get(_LOADING)):
            _load(self, loading)
        return ModuleType.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        loading: _Loading | None = _own(self).get(_LOADING)
        if loading is None or name == "__path__":  # while it is made; and a module that is no package is asked for it
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if (other := loading.late.elsewhere.get(name)) is not None:
            return getattr(importlib.import_module(other), name)
        if name in loading.late.names and _is_one_of(_importer(), loading.late.importers):
            return _StandIn(self, name)
        if not _load(self, loading):
            raise AttributeError(f"partially initialized module {self.__name__!r} has no attribute {name!r}")
        return getattr(_current(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._load_to_change(name, value)
        ModuleType.__setattr__(self, name, value)  # no `super()`, since it may be no late module any more

    def __delattr__(self, name: str) -> None:
        self._load_to_change(name)
        ModuleType.__delattr__(self, name)

    def _load_to_change(self, name: str, value: Any = None) -> None:
        """Load it, as its code would overwrite what is changed before, but for what the import system does to it.

        Nor for `__module__`, which no module's code sets: a package may write its name on all that it hands on.
        """
        loading: _Loading | None = _own(self).get(_LOADING)
        is_submodule = value is not None and sys.modules.get(f"{self.__name__}.{name}") is value
        if loading is not None and not is_submodule and name != "__module__":
            _load(self, loading)

    def __dir__(self) -> Iterable[str]:
        if loading := _own(self).get(_LOADING):
            _load(self, loading)
        return ModuleType.__dir__(self)


def _own(module: ModuleType) -> dict[str, Any]:
    """Return the namespace of a module as it is now; `vars` of a late one has it loaded."""
    return ModuleType.__getattribute__(module, "__dict__")  # type: ignore[no-any-return]


def _current(module: ModuleType) -> ModuleType:
    """Return what has the name of `module`, which its code may have put there; itself where somebody took it out."""
    return sys.modules.get(module.__name__, module)


def _load(module: ModuleType, loading: _Loading) -> bool:
    """Give `module` its contents, unless another thread has just done so.

    Returns False where its own code, or what that imports, asks for it: then it has what it has so far.

    Raises:
        ImportError, or whatever else its code raises; whoever asks next has it try again.
    """
    if not loading.lock.acquire(timeout=_PATIENCE):
        raise ImportError(f"{module.__name__} is imported by two threads that wait for each other")
    try:
        if not _is_waiting(module):
            return True
        if loading.under_way:
            return False
        spec = module.__spec__
        if spec is None or spec.loader is None:
            raise ImportError(f"nothing loads {module.__name__}")
        loading.under_way = True
        try:
            spec.loader.exec_module(module)
        finally:
            loading.under_way = False
        ModuleType.__setattr__(module, "__class__", ModuleType)
        _own(module).pop(_LOADING)
        return True
    finally:
        loading.lock.release()


def _is_waiting(module: ModuleType) -> bool:
    return type(module) is _LateModule


def _importer() -> str:
    """Return the name of the module that asks a late one for something, by itself or by an import."""
    frame: FrameType | None = sys._getframe(2)
    while frame and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")) if frame else ""


def _is_one_of(module: str, importers: tuple[str, ...]) -> bool:
    return any(module == name or (name.endswith(".") and module.startswith(name)) for name in importers)


class _Loader(importlib.abc.Loader):
    """Makes the module without its contents."""

    def __init__(self, late: Late, usual: importlib.machinery.ModuleSpec) -> None:
        self._late = late
        self._usual = usual

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _LateModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._usual  # of a late one: nothing is loaded for what the import system sets
        module.__loader__ = self._usual.loader
        module.__file__ = self._usual.origin
        _own(module)[_LOADING] = _Loading(self._late)


class _AfterItsPackage(importlib.abc.Loader):
    """Has a package loaded before a module below it, which that may import: here, as finders hold the import lock."""

    def __init__(self, package: ModuleType, usual: importlib.machinery.ModuleSpec) -> None:
        self._package = package
        self._usual = usual
        self._present: ModuleType | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        vars(self._package)
        self._present = sys.modules.get(spec.name)
        if self._present is not None:
            self._usual = self._present.__spec__ or self._usual
        return self._present

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._usual
        if self._present is None and self._usual.loader is not None:
            module.__loader__ = self._usual.loader
            module.__file__ = self._usual.origin
            self._usual.loader.exec_module(module)


def _with_loader(usual: importlib.machinery.ModuleSpec, loader: importlib.abc.Loader) -> importlib.machinery.ModuleSpec:
    """Return where a module is as usual, to be loaded by another loader."""
    spec = importlib.machinery.ModuleSpec(usual.name, loader, origin=usual.origin)
    spec.submodule_search_locations = usual.submodule_search_locations
    spec.cached = usual.cached
    return spec


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are imported late, and looks at the version of each distribution once."""

    def __init__(self) -> None:
        self._modules: dict[str, tuple[Distribution, Late]] = {}
        self._fitting: dict[tuple[str, Path], bool] = {}

    def add(self, distributions: Iterable[Distribution]) -> None:
        """Find those of `distributions`, too; a module that is known stays as it is."""
        self._modules = {late.module: (of, late) for of in distributions for late in of.modules} | self._modules

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to import one of them; None for every other one, and for a `target` that is imported anew."""
        if name not in self._modules:
            return self._after_its_package(name, path) if target is None else None
        if target is not None:  # importlib.reload
            vars(target)
            return None
        distribution, late = self._modules[name]
        usual = importlib.machinery.PathFinder.find_spec(name, path)
        if usual is None or usual.origin is None or not isinstance(usual.loader, importlib.machinery.SourceFileLoader):
            return None
        depth = name.count(".") + (usual.submodule_search_locations is not None)
        place = Path(usual.origin).parents[max(depth - 1, 0)]
        fits = self._fitting.get((distribution.name, place))
        if fits is None:
            fits = self._fitting[distribution.name, place] = distribution.is_beside(place)
        if not fits:
            return None
        return _with_loader(usual, _Loader(late, usual))

    def _after_its_package(self, name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        """Return how to import a module below one that waits, and has to be loaded before; None for all others."""
        package, _, own = name.rpartition(".")
        late = self._modules[package][1] if package in self._modules else None
        if late is None or late.alone is None or own in late.alone or package not in sys.modules:
            return None
        module = sys.modules[package]
        loading: _Loading | None = _own(module).get(_LOADING)
        usual = None if loading is None or loading.under_way else importlib.machinery.PathFinder.find_spec(name, path)
        if usual is None:
            return None
        return _with_loader(usual, _AfterItsPackage(module, usual))


def install(distributions: Iterable[Distribution]) -> None:
    """Import the modules of `distributions` late from now on; one that is imported already stays as it is."""
    finder = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.add(distributions)


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


UVICORN = Distribution(
    "uvicorn",
    "0.54.0",
    (
        Late("uvicorn", elsewhere={"Config": "uvicorn.config", "Server": "uvicorn.server"}),
        Late("uvicorn.middleware.asgi2", frozenset({"ASGI2Middleware"}), ("uvicorn.config",)),
        Late("uvicorn.middleware.message_logger", frozenset({"MessageLoggerMiddleware"}), ("uvicorn.config",)),
        Late("uvicorn.middleware.wsgi", frozenset({"WSGIMiddleware"}), ("uvicorn.config",)),
    ),
)
"""What no service of the kit uses of its server: the command line, the supervisors of processes, other interfaces."""
