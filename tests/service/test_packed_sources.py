"""Packages whose sources are packed are imported, listed and shown as before: tools/shrink.py packs, the kit reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from pallas_service import packed_sources
from tools import shrink

PACKAGE = {
    "whole/__init__.py": "from whole.inner import fail\n",
    "whole/inner.py": "def fail():\n    raise ValueError('as written')  # a remark\n",
    "whole/below/__init__.py": "",
    "whole/below/uncompiled.py": "NUMBER = 7\n",
    "whole/data.txt": "text",
    "single.py": "import whole\n",
    "namespace/packed/__init__.py": "NUMBER = 8\n",
    "key_value/__init__.py": "",
    "whole-1.0.dist-info/RECORD": "whole/inner.py,sha256=abc,3\nwhole/data.txt,sha256=def,4\nsingle.py,,\n",
}
HEAD = """
import sys
sys.path.insert(0, sys.argv[1])
from pallas_service import packed_sources
packed_sources.install(sys.argv[1])
packed_sources.install(sys.argv[1])
"""


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """Return a folder of packages: compiled but for one module, then packed."""
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    names = ["whole/__init__.py", "whole/inner.py", "single.py"]
    subprocess.run([*command, *(str(tmp_path / name) for name in names)], check=True, timeout=60)
    shrink.pack(tmp_path)
    return tmp_path


def run(site_packages: Path, code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-c", HEAD + code, str(site_packages)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_sources_are_packed_and_the_record_says_so(site_packages: Path) -> None:
    plain = {path.relative_to(site_packages).as_posix() for path in site_packages.rglob("*.py")}
    assert plain == {"key_value/__init__.py"}
    whole, bytecode, data, single, _ = (site_packages / "whole-1.0.dist-info" / "RECORD").read_text().splitlines()
    size = (site_packages / "whole" / "inner.py.gz").stat().st_size
    assert whole.startswith("whole/inner.py.gz,sha256=")
    assert whole.endswith(f",{size}")
    assert bytecode == f"whole/__pycache__/inner.{sys.implementation.cache_tag}.pyc,,"
    assert data == "whole/data.txt,sha256=def,4"
    assert single.startswith("single.py.gz,")
    assert (site_packages / "pallas_packed_sources.pth").read_text() == shrink.HOOK


def test_the_same_sources_give_the_same_bytes(site_packages: Path, tmp_path: Path) -> None:
    path = tmp_path / "again" / "whole" / "inner.py"
    path.parent.mkdir(parents=True)
    path.write_text(PACKAGE["whole/inner.py"])
    os.utime(path, (1, 1))
    shrink.pack(tmp_path / "again")
    assert path.with_suffix(".py.gz").read_bytes() == (site_packages / "whole" / "inner.py.gz").read_bytes()


def test_a_traceback_shows_the_line(site_packages: Path) -> None:
    ran = run(site_packages, "import single\nsingle.whole.fail()")
    file = site_packages / "whole" / "inner.py"
    assert f"File \"{file}\", line 2, in fail\n    raise ValueError('as written')  # a remark" in ran.stderr


def test_modules_say_of_themselves_what_they_did(site_packages: Path) -> None:
    code = """
import importlib, importlib.resources, importlib.util, inspect, os, pkgutil
import whole, whole.inner, whole.below.uncompiled as uncompiled, key_value
print(whole.inner.__file__ == os.path.join(sys.argv[1], "whole", "inner.py"))
cached = whole.inner.__cached__
print(cached == importlib.util.cache_from_source(whole.inner.__file__), os.path.exists(cached))
print("a remark" in inspect.getsource(whole.inner.fail), inspect.getsourcefile(whole.inner) == whole.inner.__file__)
import namespace.packed
print(namespace.packed.NUMBER, namespace.__file__)
print(uncompiled.NUMBER, importlib.reload(uncompiled).NUMBER)
print(*(name for _, name, _ in pkgutil.walk_packages(whole.__path__, "whole.")))
print([(name, is_package) for _, name, is_package in pkgutil.iter_modules([sys.argv[1]])])
print(importlib.resources.files("whole").joinpath("data.txt").read_text())
print(importlib.util.find_spec("whole.nothing"), importlib.util.find_spec("nowhere_at_all"))
importlib.invalidate_caches()
"""
    ran = run(site_packages, code)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "True",
        "True True",
        "True True",
        "8 None",
        "7 7",
        "whole.below whole.below.uncompiled whole.inner",
        "[('key_value', True), ('single', False), ('whole', True)]",
        "text",
        "None None",
    ]


def test_what_is_installed_later_goes_first(site_packages: Path) -> None:
    path = site_packages / "whole" / "inner.py"
    path.write_text("def fail():\n    print('patched')\n")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(path)], check=True, timeout=60)  # as pip does
    assert run(site_packages, "import single\nsingle.whole.fail()").stdout == "patched\n"


def test_bytecode_that_is_written_later_is_read(site_packages: Path) -> None:
    """Where `PYTHONDONTWRITEBYTECODE` is unset, modules that the image has no bytecode of are compiled once."""
    command = [sys.executable, "-v", "-c", f"{HEAD}import whole.below.uncompiled", str(site_packages)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    first, second = (
        subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environ) for _ in range(2)
    )
    source = str(site_packages / "whole" / "below" / "uncompiled.py")
    assert f"# code object from {source}\n" in first.stderr
    assert f"# {cache_from_source(source)} matches {source}\n" in second.stderr


def test_a_damaged_source_says_which_one(site_packages: Path) -> None:
    path = site_packages / "whole" / "below" / "uncompiled.py.gz"
    path.write_bytes(path.read_bytes()[:-9])
    assert f"OSError: {path} is damaged" in run(site_packages, "import whole.below.uncompiled").stderr


def test_beartype_finds_its_place_among_the_hooks(site_packages: Path) -> None:
    code = "from beartype.claw import beartype_package\nbeartype_package('key_value')\nimport key_value, single"
    ran = run(site_packages, f"{code}\nsingle.whole.fail()")
    assert "as written')  # a remark" in ran.stderr


def test_each_python_of_the_environment_has_the_hook(site_packages: Path) -> None:
    service = site_packages / "pallas_service"
    service.mkdir()
    (service / "__init__.py").touch()
    shutil.copy(str(packed_sources.__file__), service)
    code = "import site, sys\nsite.addsitedir(sys.argv[1])\nimport single\nsingle.whole.fail()"
    command = [sys.executable, "-I", "-S", "-B", "-c", code, str(site_packages)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "as written')  # a remark" in ran.stderr


def test_finding_them_imports_next_to_nothing() -> None:
    """Each Python of an image does it, each health check: typing and collections would be a third of its start."""
    head = (
        "import sys; sys.path.append(sys.argv[1]); from pallas_service import packed_sources; packed_sources.install()"
    )
    command = [sys.executable, "-S", "-c", f"{head}; print(*sys.modules)", Path(packed_sources.__file__).parents[1]]
    loaded = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    assert "pallas_service.packed_sources" in loaded
    assert {"collections", "functools", "re", "types", "typing"}.isdisjoint(loaded)
