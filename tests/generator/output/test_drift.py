"""What stands in a folder instead of what would be written, and what stands beside it where everything counts."""

from __future__ import annotations

import os
import socket
from pathlib import Path, PurePosixPath

import pytest

from pallas_gen.output import write
from pallas_gen.output.drift import drift

PLANNED = {PurePosixPath(path): f"text of {path}\n" for path in ("top", "own/one", "own/deep/two")}
FILES = PLANNED | {write.SUMS: write.sums(PLANNED)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as it was written, beside one of somebody else."""
    (tmp_path / "evil" / "inner").mkdir(parents=True)
    (tmp_path / "evil" / "inner" / "x.yaml").write_text("x")
    (tmp_path / "evil" / "x.yaml").write_text("x")
    write.write(FILES, tmp_path / "out")
    return tmp_path / "out"


def found(folder: Path, *, owned: tuple[str, ...] = ("own", "crds")) -> dict[str, str]:
    return {str(entry.path): entry.kind for entry in drift(FILES, folder, owned)}


def bind(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def evil(path: Path) -> Path:
    return next(above / "evil" for above in path.parents if (above / "evil").is_dir())


OTHERS = {
    "file": lambda path: path.write_text("x"),
    "linked file": lambda path: path.symlink_to(evil(path) / "x.yaml"),
    "linked folder": lambda path: path.symlink_to(evil(path)),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nowhere": lambda path: path.symlink_to("nowhere"),
    "link to the folder above": lambda path: path.symlink_to("."),
    "pipe": os.mkfifo,
    "socket": bind,
}


def test_nothing_differs_where_everything_is_as_written(folder: Path) -> None:
    (folder / "own" / "empty").mkdir()
    (folder / "beside").symlink_to("../evil")
    assert found(folder) == {}


@pytest.mark.parametrize("kind", OTHERS)
def test_whatever_stands_where_everything_counts_is_named(folder: Path, kind: str) -> None:
    OTHERS[kind](folder / "own" / "more")
    assert found(folder) == {"own/more": "foreign"}
    assert found(folder, owned=()) == {}


def test_a_folder_in_which_everything_counts_is_no_link_itself(folder: Path) -> None:
    (folder / "crds").symlink_to("../evil")
    assert found(folder) == {"crds": "foreign"}
    (folder / "crds").unlink()
    (folder / "crds").write_text("x")
    assert found(folder) == {"crds": "foreign"}


def test_what_was_written_before_is_named_as_what_it_became(folder: Path) -> None:
    old = PurePosixPath("own/old")
    (folder / write.SUMS).write_text(write.sums({**PLANNED, old: "text"}))
    (folder / old).write_text("text")
    assert found(folder) == {"own/old": "leftover"}
    (folder / old).unlink()
    (folder / old).symlink_to("../../evil")
    assert found(folder) == {"own/old": "leftover"}
    (folder / old).unlink()
    (folder / old).mkdir()
    (folder / old / "x.yaml").write_text("x")
    assert found(folder) == {"own/old/x.yaml": "foreign"}


@pytest.mark.parametrize("kind", ["folder", *sorted(OTHERS.keys() - {"file", "linked file"})])
def test_what_stands_in_the_place_of_a_file_is_no_missing_file(folder: Path, kind: str) -> None:
    for name in ("top", "own/one", str(write.SUMS)):
        text = (folder / name).read_text()
        (folder / name).unlink()
        assert found(folder) == {name: "missing"}
        (Path.mkdir if kind == "folder" else OTHERS[kind])(folder / name)
        assert found(folder) == {name: "irregular"}
        (Path.rmdir if kind == "folder" else Path.unlink)(folder / name)
        (folder / name).write_text(text)
