"""tools/supply_chain/release.py and __main__.py: what is in the way is a line, and no folder of others is replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from pallas_gen.images import sources
from tools.supply_chain import __main__ as command
from tools.supply_chain import checkout, release


@pytest.fixture(autouse=True)
def releasable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this checkout be one to release, up to its first file."""

    def stop(*_: object) -> None:
        raise ValueError("anyio is 1 here and 2 in dev.lock: make setup")

    monkeypatch.setattr(checkout, "problems", lambda *_: [])
    monkeypatch.setattr(checkout, "foreign", lambda *_: [])
    monkeypatch.setattr(release.environment, "output", lambda *_, **__: "")
    monkeypatch.setattr(checkout, "epoch", lambda _: 0)
    monkeypatch.setattr(release.distribution, "components", stop)


def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code, and what is written to stderr."""
    monkeypatch.setattr(sys, "argv", ["tools/release", *arguments])
    return command.main(), capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ({"thesis.txt": ""}, "thesis.txt"),
        ({"a.whl": "", "SHA256SUMS": "00  a.whl\n", "b": "", "c": ""}, "b and 1 more"),
        ({"SHA256SUMS": "00  folder\n", "folder/file": ""}, "folder"),
        ({".git/config": ""}, ".git"),
    ],
)
def test_a_folder_with_other_files_is_not_replaced(
    tmp_path: Path, monkeypatch: Any, capsys: Any, files: dict[str, str], first: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    code, text = main(monkeypatch, capsys, "--out", str(tmp_path))
    reason = f"has what its SHA256SUMS does not name ({first})"
    assert (code, text) == (2, f"{tmp_path} {reason}: empty it, or name another with --out\n")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(files)


def test_a_file_is_no_folder_to_replace(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "a").touch()
    code, text = main(monkeypatch, capsys, "--out", str(tmp_path / "a"))
    assert (code, text) == (2, f"{tmp_path}/a is no folder: name another one with --out\n")


def test_a_release_an_empty_folder_and_none_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name, text in {"a.whl": "", "SHA256SUMS": "00  a.whl\n"}.items():
        (tmp_path / "old" / name).write_text(text)
    (tmp_path / "empty").mkdir()
    for name in ("old", "empty", "none"):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "b.whl").touch()
        release._replace(tmp_path / "new", tmp_path / name, tmp_path / "beside")
        assert [path.name for path in (tmp_path / name).iterdir()] == ["b.whl"]


def test_a_file_that_came_while_all_was_built_stays(tmp_path: Path) -> None:
    for name in ("new", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").touch()
    with pytest.raises(release.NotReleasable, match="does not name"):
        release._replace(tmp_path / "new", tmp_path / "out", tmp_path / "beside")
    assert (tmp_path / "out" / "out.txt").is_file()


@pytest.mark.parametrize("error", [ValueError("a is 1 here"), PackageNotFoundError("a"), OSError(28, "No space left")])
def test_what_a_step_raises_is_a_line(tmp_path: Path, monkeypatch: Any, capsys: Any, error: Exception) -> None:
    def components(_: Path) -> None:
        raise error

    monkeypatch.setattr(release.distribution, "components", components)
    monkeypatch.setattr(checkout, "commit", lambda _: "0")
    monkeypatch.setattr(Path, "glob", lambda *_: iter([Path(__file__)]))
    code, text = main(monkeypatch, capsys, "--out", str(tmp_path / "dist"))
    assert (code, text) == (1, f"{error}; nothing was released\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError("it has 2 images"), release.tarfile.ReadError("truncated")])
def test_an_image_that_cannot_be_read_is_a_line(tmp_path: Path, monkeypatch: Any, error: Exception) -> None:
    def read(*_: object, **__: object) -> Iterator[None]:
        raise error

    monkeypatch.setattr(release.builds, "build", lambda *_, **__: tmp_path)
    monkeypatch.setattr(release.oci, "read", read)
    with pytest.raises(release.NotReleasable, match=f"{error}; nothing was released"):
        release._image("pallas-agent", tmp_path, (), 0, known={}, again=False)


def test_a_list_of_licences_that_cannot_be_read_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    (tmp_path / "licences.toml").write_text("allowed = 1\nstated = 2\n")
    monkeypatch.setattr(release, "LICENCES", tmp_path / "licences.toml")
    code, text = main(monkeypatch, capsys, "--out", str(tmp_path / "dist"))
    assert code == 2
    assert [line.partition(" is no ")[0] for line in text.splitlines()] == [
        "requirements/licences.toml:1 allowed",
        "requirements/licences.toml:2 stated",
    ]


def test_a_folder_that_cannot_be_made_is_a_line(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / "file").touch()
    code, text = main(monkeypatch, capsys, "--out", str(tmp_path / "file" / "sub" / "dist"))
    assert (code, text.splitlines()[1:]) == (1, [])
    assert "; nothing was released" in text


def test_the_command_has_the_code_of_its_checkout_and_stays_where_it_is(root: Path, tmp_path: Path) -> None:
    for name in ("docker", "helm", "python"):
        (tmp_path / name).write_text('#!/bin/sh\n[ "$1" != -P ] || echo "$PWD $PYTHONPATH $*"\n')
        (tmp_path / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHON": str(tmp_path / "python")}
    command = [root / "tools/release", "--out", "dist"]
    done = subprocess.run(command, check=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    folder, path, *arguments = done.stdout.split()
    assert folder == str(tmp_path)
    assert arguments == ["-P", "-m", "tools.supply_chain", "--out", "dist"]
    folders = [Path(entry) for entry in path.split(":")]
    for package in (*sources.roots(), "pallas_gen", "tools"):
        assert any((entry / package).is_dir() for entry in folders), package
    assert all(entry.is_relative_to(root) for entry in folders)
