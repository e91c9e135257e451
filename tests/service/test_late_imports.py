"""A late module is loaded for whoever uses it; those that the table names get stand-ins, all others the real thing."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pallas_service import late_imports
from pallas_service.late_imports import Distribution, Late, StandardLibrary

HEAVY = """
import late_log
late_log.append(__name__)
class Thing:
    kind = "thing"
    def __init__(self, size=1):
        self.size = size
    @classmethod
    def made(cls):
        return cls(7)
def double(number):
    return number * 2
"""
USER = """
from late_package.heavy import Thing, double
from late_package.heavy import Thing as Again
def make(thing: Thing | None = None) -> "Thing":
    return Thing(3)
def is_thing(value):
    return isinstance(value, Thing)
def twice(number):
    return double(number)
def subclass():
    class Special(Thing):
        pass
    return Special
"""
LATE = Late("late_package.heavy", frozenset({"Thing", "double"}), ("late_package.user",))


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Return the names of the modules that were loaded."""
    loaded: Any = ModuleType("late_log")
    names: list[str] = []
    loaded.append = names.append
    sys.modules["late_log"] = loaded
    yield names
    for name in [name for name in sys.modules if name.partition(".")[0] in {"late_log", "late_package", "late_plain"}]:
        del sys.modules[name]


@pytest.fixture
def arrange(tmp_path: Path, log: list[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what has the package found, with these late modules and that version installed."""
    package = tmp_path / "late_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "heavy.py").write_text(HEAVY)
    (package / "user.py").write_text(USER)
    (package / "other.py").write_text("from late_package.heavy import Thing\n")
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").write_text(f"{HEAVY}\nfrom late_package.inner.error import Wrong\n")
    (package / "inner" / "error.py").write_text("class Wrong(Exception):\n    pass\n")
    (tmp_path / "late_package-1.2.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "late" not in type(finder).__module__])

    def install(*modules: Late, version: str = "1.2") -> None:
        late_imports.install([Distribution("late_package", version, modules or (LATE,))])

    return install


def imported(name: str) -> Any:
    return importlib.import_module(f"late_package.{name}")


def test_a_stand_in_is_as_good_as_what_it_stands_for(arrange: Callable[..., None], log: list[str]) -> None:
    arrange()
    user = imported("user")
    assert not user.is_thing(1), "nothing can be an instance of a class that is not there"
    assert log == []
    made = user.make()
    assert log == ["late_package.heavy"]
    heavy = sys.modules["late_package.heavy"]
    assert type(made) is heavy.Thing
    assert type(heavy) is ModuleType
    assert user.is_thing(made)
    assert not user.is_thing(1)
    assert user.twice(4) == 8
    assert user.Thing.kind == "thing"
    assert user.Thing.made().size == 7
    assert issubclass(user.subclass(), heavy.Thing)
    assert user.is_thing(user.subclass()())
    assert issubclass(heavy.Thing, user.Thing)
    assert "Thing" in repr(user.Again)
    assert log == ["late_package.heavy"], "once"


def test_one_that_was_taken_out_of_the_modules_goes_on(arrange: Callable[..., None], log: list[str]) -> None:
    """As who reloads code, or isolates tests, does with modules; those who have it go on using it."""
    arrange()
    user, heavy = imported("user"), imported("heavy")
    del sys.modules["late_package.heavy"]
    assert heavy.double(2) == 4
    assert user.twice(4) == 8
    assert log == ["late_package.heavy"]


def test_a_subclass_has_it_loaded(arrange: Callable[..., None], log: list[str]) -> None:
    arrange()
    special = imported("user").subclass()
    assert special().size == 1
    assert [parent.__name__ for parent in special.__mro__] == ["Special", "Thing", "object"]
    assert log == ["late_package.heavy"]


def test_everybody_else_has_the_real_thing(arrange: Callable[..., None], log: list[str]) -> None:
    arrange()
    other = imported("other")
    assert isinstance(other.Thing, type)
    assert log == ["late_package.heavy"]


def test_a_module_as_a_whole_is_there_when_it_is_looked_into(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    heavy = imported("heavy")
    assert log == []
    assert "double" in dir(heavy)
    assert heavy.double(2) == 4
    assert log == ["late_package.heavy"]
    with pytest.raises(AttributeError, match="nothing"):
        _ = heavy.nothing
    assert not hasattr(heavy, "__path__")


def test_modules_of_a_late_package_are_imported_without_it(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.inner", elsewhere={"Wrong": "late_package.inner.error"}))
    from late_package.inner import Wrong  # type: ignore[import-not-found]  # noqa: PLC0415
    from late_package.inner.error import Wrong as Same  # type: ignore[import-not-found]  # noqa: PLC0415

    assert Wrong is Same
    assert log == []
    assert imported("inner").double(1) == 2
    assert imported("inner").Wrong is Same
    assert log == ["late_package.inner"]


LOGGED = "import late_log\nlate_log.append(__name__)\n"
CIRCLE = {
    "__init__": f"{LOGGED}from late_package.circle.first import First\n",
    "first": f"{LOGGED}class First:\n    pass\nfrom late_package.circle.second import Second\n",
    "second": f"{LOGGED}from late_package.circle.first import First\nclass Second(First):\n    pass\n",
    "later": f"{LOGGED}from late_package.circle.second import Second\n",
    "lone": "NUMBER = 3\n",
}


@pytest.mark.parametrize("first", ["second", "first", "later"])
def test_modules_that_import_each_other_are_imported_by_their_package(
    arrange: Callable[..., None], tmp_path: Path, log: list[str], first: str
) -> None:
    """`second` has to be imported by `first`: if it comes before, `first` finds no `Second` in it."""
    folder = tmp_path / "late_package" / "circle"
    folder.mkdir()
    for name, text in CIRCLE.items():
        (folder / f"{name}.py").write_text(text)
    arrange(Late("late_package.circle", alone=frozenset({"lone"})))
    assert imported("circle.lone").NUMBER == 3
    assert log == []
    module = imported(f"circle.{first}")
    once = ["late_package.circle", "late_package.circle.first", "late_package.circle.second"]
    assert log[:3] == once
    package = sys.modules["late_package.circle"]
    assert getattr(package, first) is module is sys.modules[f"late_package.circle.{first}"]
    assert module.__file__ == module.__spec__.origin == str(folder / f"{first}.py")
    assert module.__spec__.loader is module.__loader__
    assert imported("circle.second").Second.__base__ is package.First
    assert log == [*once, *(["late_package.circle.later"] if first == "later" else [])]


def test_who_writes_its_name_on_it_has_it_not_loaded(arrange: Callable[..., None], log: list[str]) -> None:
    """As `openai` does with all that it hands on."""
    arrange()
    imported("heavy").__module__ = "late_package"
    assert log == []
    assert imported("heavy").double(2) == 4
    assert imported("heavy").__module__ == "late_package"


def test_an_instance_is_known_where_a_module_below_the_late_one_made_it(
    arrange: Callable[..., None], tmp_path: Path, log: list[str]
) -> None:
    (tmp_path / "late_package" / "inner" / "__init__.py").write_text("from late_package.inner.made import Thing")
    (tmp_path / "late_package" / "inner" / "made.py").write_text(HEAVY)
    (tmp_path / "late_package" / "user.py").write_text(USER.replace("heavy", "inner").replace(", double", ""))
    arrange(Late("late_package.inner", frozenset({"Thing"}), ("late_package.user",)))
    user, made = imported("user"), imported("inner.made")
    assert not user.is_thing(1)
    assert type(sys.modules["late_package.inner"]) is not ModuleType
    assert user.is_thing(made.Thing())
    assert type(sys.modules["late_package.inner"]) is ModuleType


def test_a_subclass_is_known_where_a_module_below_the_late_one_made_it(
    arrange: Callable[..., None], tmp_path: Path, log: list[str]
) -> None:
    (tmp_path / "late_package" / "inner" / "__init__.py").write_text("from late_package.inner.made import Thing")
    (tmp_path / "late_package" / "inner" / "made.py").write_text(HEAVY)
    (tmp_path / "late_package" / "user.py").write_text("from late_package.inner import Thing")
    arrange(Late("late_package.inner", frozenset({"Thing"}), ("late_package.user",)))
    user, made = imported("user"), imported("inner.made")
    assert not issubclass(int, user.Thing)
    assert issubclass(type("Special", (made.Thing,), {}), user.Thing)


def test_what_is_assigned_to_it_stays(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    heavy = imported("heavy")
    heavy.Thing = None
    assert log == ["late_package.heavy"]
    assert heavy.double(2) == 4
    assert heavy.Thing is None


def test_what_is_taken_away_from_it_stays_away(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    heavy = imported("heavy")
    del heavy.Thing
    assert heavy.double(2) == 4
    assert not hasattr(heavy, "Thing")


def test_its_own_code_may_assign_to_it(arrange: Callable[..., None], tmp_path: Path, log: list[str]) -> None:
    (tmp_path / "late_package" / "heavy.py").write_text(
        "import late_package.heavy as own\nown.limit = 3\nassert not hasattr(own, 'later')\nlater = own.limit + 1\n"
    )
    arrange(Late("late_package.heavy"))
    assert imported("heavy").later == 4
    assert imported("heavy").limit == 3


@pytest.mark.parametrize("version", ["1.3", "1"])
def test_with_another_version_all_is_imported_as_usual(
    arrange: Callable[..., None], log: list[str], version: str
) -> None:
    arrange(version=version)
    user = imported("user")
    assert isinstance(user.Thing, type)
    assert log == ["late_package.heavy"]


def test_a_module_that_cannot_be_imported_says_so_each_time(
    arrange: Callable[..., None], tmp_path: Path, log: list[str]
) -> None:
    arrange()
    user = imported("user")
    path = tmp_path / "late_package" / "heavy.py"
    path.write_text("import nowhere_at_all")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
            user.make()
    path.write_text(HEAVY + "\n# mended\n")
    assert user.make().size == 3


def test_threads_that_use_it_at_once_wait_for_one_load(
    arrange: Callable[..., None], tmp_path: Path, log: list[str]
) -> None:
    arrange()
    begun, go = threading.Event(), threading.Event()
    sys.modules["late_log"].__dict__.update(begun=begun, go=go)
    (tmp_path / "late_package" / "heavy.py").write_text(
        f"import late_log\nlate_log.begun.set()\nlate_log.go.wait(60)\n{HEAVY}"
    )
    user = imported("user")
    sizes: list[int] = []
    threads = [threading.Thread(target=lambda: sizes.append(user.make().size)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    go.set()
    for thread in threads:
        thread.join(60)
    assert sizes == [3, 3, 3, 3]
    assert log == ["late_package.heavy"]


def test_a_module_that_is_loaded_is_loaded_anew_by_reload(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    heavy = imported("heavy")
    thing = heavy.Thing
    heavy.limit = 3
    assert importlib.reload(heavy) is heavy
    assert log == ["late_package.heavy", "late_package.heavy"]
    assert heavy.Thing is not thing
    assert heavy.limit == 3, "a name that its code does not make stays, as of any module"
    assert type(heavy) is ModuleType


def test_reload_of_one_that_waits_does_what_it_does_of_another(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    heavy = imported("heavy")
    assert importlib.reload(heavy) is heavy
    assert log == ["late_package.heavy", "late_package.heavy"], "its import, and once more"
    assert type(heavy) is ModuleType
    assert heavy.double(2) == 4


def test_its_namespace_is_whole(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    heavy = imported("heavy")
    assert {"Thing", "double"} <= vars(heavy).keys()
    assert log == ["late_package.heavy"]
    assert not any("pallas" in name for name in vars(heavy))


def test_tables_that_are_installed_later_count_too(arrange: Callable[..., None], log: list[str]) -> None:
    arrange(Late("late_package.heavy"))
    arrange(Late("late_package.inner"), LATE)
    inner, heavy = imported("inner"), imported("heavy")
    assert log == []
    assert (inner.double(1), heavy.double(1)) == (2, 2)
    assert isinstance(imported("user").Thing, type), "of a module that two tables name the first one holds"


LEAN = """
import sys
from pallas_gateway import unused_imports
from pallas_service import late_imports
late_imports.install(unused_imports.DISTRIBUTIONS)
late_imports.install(unused_imports.DISTRIBUTIONS)
from mcp.server.lowlevel.server import Server
from pallas_service.access import gate, verifier
assert "mcp.client" not in sys.modules, "imported with a module"
assert "jwt" not in sys.modules, "a token in a file is no JWT"
import mcp
import mcp.server
assert mcp.server.Server is Server
assert mcp.server.MCPServer.__name__ == "MCPServer"
from mcp import Client
assert Client.__module__ == "mcp.client.client"
print("whole")
"""


def test_a_package_of_which_modules_are_imported_is_whole_for_who_asks_for_more() -> None:
    # in a process of its own: these are packages that tests import whole
    ran = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stdout, ran.stderr) == ("whole\n", "")


def test_a_package_that_was_hidden_is_there_afterwards() -> None:
    code = """
import sys
from pallas_service import late_imports
with late_imports.without("json"):
    try:
        import json
    except ImportError:
        print("hidden")
import json
with late_imports.without("json"):
    import json
print(json.dumps(1))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.stdout, ran.stderr) == ("hidden\n1\n", "")


@pytest.mark.parametrize(
    ("version", "shadowed", "waits"),
    [("running", False, True), ("2.7", False, False), ("running", True, False)],
    ids=["of this Python", "of another one", "a project's own module of that name"],
)
def test_the_standard_library_waits(
    version: str, shadowed: bool, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version == "running":
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if shadowed:
        (tmp_path / "colorsys.py").write_text("OWN = True\n")
        monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "late" not in type(finder).__module__])
    monkeypatch.setitem(sys.modules, "colorsys", ModuleType("colorsys"))  # undone at the end, whatever was there
    del sys.modules["colorsys"]
    late_imports.install([StandardLibrary("python", version, (Late("colorsys"),))])
    module = importlib.import_module("colorsys")
    assert (type(module) is not ModuleType) is waits
    assert module.OWN if shadowed else module.rgb_to_hsv(1, 0, 0) == (0.0, 1.0, 1)
