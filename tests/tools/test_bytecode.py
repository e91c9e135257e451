"""tools/bytecode.py: what one clone has compiled serves another one, for as long as the sources are the same."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installed import run
from tools import bytecode

TESTS = """
[pytest]
addopts = -p no:pallas
"""


class Clone:
    """A repository with a test, and a package that an installer has put there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.packages, self._monkeypatch = folder, folder / "packages", monkeypatch
        self.test, self.package = folder / "test_one.py", self.packages / "made" / "one.py"
        self.package.parent.mkdir(parents=True)
        self.package.write_text("ONE = 1\n")
        os.utime(self.package, (1e9, 1e9))  # as it was packed: installers keep it
        self.test.write_text("def test_one():\n    assert 1\n")
        (folder / "pytest.ini").write_text(TESTS)
        run("git", "init", "-q", cwd=folder)
        run("git", "add", "test_one.py", cwd=folder)

    def compiled(self) -> dict[str, float]:
        """Return when each file was written."""
        return {path.relative_to(self.folder).as_posix(): path.stat().st_mtime for path in self.folder.rglob("*.pyc")}

    def work(self) -> str:
        """Import the package and the test, and have pytest run it; return what pytest printed."""
        code = "import made.one, test_one"
        env = {**os.environ, "PYTHONPATH": f"{self.folder}:{self.packages}"}
        subprocess.run([sys.executable, "-c", code], cwd=self.folder, env=env, check=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py"]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False).stdout

    def do(self, what: str) -> None:
        self._monkeypatch.setattr(bytecode, "ROOT", self.folder)
        self._monkeypatch.setattr(bytecode, "packages", lambda: self.packages)
        getattr(bytecode, what)()


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Clone, Clone]:
    """One that has worked and kept it, and another one."""
    monkeypatch.setattr(bytecode, "CACHE", tmp_path / "cache")
    first, second = (Clone(tmp_path / name, monkeypatch) for name in ("first", "second"))
    assert "1 passed" in first.work()
    first.do("keep")
    return first, second


def test_nothing_is_compiled_that_another_clone_has_compiled(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    os.utime(second.test, (2e9, 2e9))
    second.do("take")
    taken = second.compiled()
    assert set(taken) == set(first.compiled())
    assert len(taken) == 3, "of the package, of the test by Python, and by pytest"
    assert "1 passed" in second.work()
    assert second.compiled() == taken, "all of it was used"
    code = importlib.util.cache_from_source(str(second.test))
    assert bytes(second.test) in Path(code).read_bytes(), "tracebacks name the file of this clone"


def test_what_has_changed_is_not_taken(clones: tuple[Clone, Clone]) -> None:
    _, second = clones
    second.package.write_text("ONE = 2\n")
    second.test.write_text("def test_one():\n    assert 0\n")
    second.do("take")
    assert second.compiled() == {}
    assert "1 failed" in second.work()


def test_what_was_not_compiled_of_the_source_that_is_there_is_not_kept(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    before = first.test.stat().st_mtime
    first.test.write_text("def test_one():\n    assert 0\n")
    os.utime(first.test, (int(before) + 0.999, int(before) + 0.999))  # within the second, as Python sees it
    for path in first.test.parent.glob("__pycache__/*"):
        os.utime(path, (before, before))
    second.test.write_text(first.test.read_text())
    first.do("keep")
    second.do("take")
    assert {Path(name).parts[0] for name in second.compiled()} == {"packages"}


def test_what_nobody_has_taken_for_a_month_is_removed(clones: tuple[Clone, Clone], tmp_path: Path) -> None:
    first, _ = clones
    old = tmp_path / "cache" / "own" / "old"
    old.mkdir()
    os.utime(old, (1e9, 1e9))
    first.do("keep")
    assert len(list(old.parent.iterdir())) == 1
