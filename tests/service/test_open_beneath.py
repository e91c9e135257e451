"""Files beneath a folder: plain ones are opened, and nothing leads out, also not by a link that comes in between."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pallas_service.open_beneath import open_beneath
from tests.documentation import blocks


@pytest.fixture
def home(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "home" / "deep").mkdir(parents=True)
    (tmp_path / "home" / "a.md").write_text("mine")
    (tmp_path / "home" / "deep" / "b.md").write_text("deep")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b.md").write_text("secret")
    folder = os.open(tmp_path / "home", os.O_PATH | os.O_DIRECTORY)
    yield folder
    os.close(folder)


def read(folder: int, path: str) -> str:
    with os.fdopen(open_beneath(folder, path)) as file:
        return file.read()


@pytest.mark.parametrize(("path", "text"), [("a.md", "mine"), ("deep/b.md", "deep"), ("./deep//b.md", "deep")])
def test_files_of_the_folder_are_opened(home: int, path: str, text: str) -> None:
    assert read(home, path) == text


def test_it_is_an_opener_of_open(home: int, tmp_path: Path) -> None:
    with open("deep/new.md", "w", opener=partial(open_beneath, home)) as file:
        file.write("new")
    assert (tmp_path / "home" / "deep" / "new.md").read_text() == "new"
    assert (tmp_path / "home" / "deep" / "new.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "path", ["", ".", "/", "/etc/passwd", "..", "../work/b.md", "deep/../../work/b.md", "deep/..", "deep", "none.md"]
)
def test_no_path_leads_out(home: int, path: str) -> None:
    with pytest.raises(OSError, match=r"\w"):
        open_beneath(home, path)


def test_a_zero_byte_ends_no_path(home: int) -> None:
    with pytest.raises(ValueError, match="null"):
        open_beneath(home, "a.md\0.txt")


@pytest.mark.parametrize("target", ["../work/b.md", "a.md", "../work"])
@pytest.mark.parametrize("path", ["link", "link/b.md"])
def test_no_link_is_followed(home: int, tmp_path: Path, target: str, path: str) -> None:
    (tmp_path / "home" / "link").symlink_to(target)
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        with pytest.raises(OSError, match=r"\w"):
            open_beneath(home, path, flags)
    assert (tmp_path / "work" / "b.md").read_text() == "secret"


def test_the_page_has_a_tool_that_reads_its_own_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tasks" / "home").mkdir(parents=True)
    (tmp_path / "tasks" / "home" / "a.md").write_text("mine")
    (tmp_path / "tasks" / "b.md").write_text("secret")
    monkeypatch.chdir(tmp_path)
    (text,) = blocks.files("open-beneath").values()
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["read_task"]("a.md") == "mine"
    with pytest.raises(OSError, match="beneath"):
        names["read_task"]("../b.md")
    os.close(names["HOME"])


def test_what_is_no_file_keeps_nobody_waiting(home: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "home" / "pipe")
    for flags in (os.O_RDONLY, os.O_WRONLY):
        with pytest.raises(OSError, match=r"\w"):
            open_beneath(home, "pipe", flags)


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Return what has something done in the moment before a part of a path is opened."""

    def hook(part: str, act: Callable[[], object]) -> None:
        real = os.open

        def patched(path: Any, *args: Any, **options: Any) -> int:
            if path == part:
                act()
            return real(path, *args, **options)

        monkeypatch.setattr(os, "open", patched)

    return hook


def test_a_folder_that_becomes_a_link_before_it_is_opened(home: int, tmp_path: Path, before: Any) -> None:
    def swap() -> None:
        (tmp_path / "home" / "deep").rename(tmp_path / "home" / "old")
        (tmp_path / "home" / "deep").symlink_to(tmp_path / "work")

    before("deep", swap)
    with pytest.raises(OSError, match="deep"):
        read(home, "deep/b.md")


def test_a_folder_that_becomes_a_link_after_it_was_opened(home: int, tmp_path: Path, before: Any) -> None:
    def swap() -> None:
        (tmp_path / "home" / "deep").rename(tmp_path / "home" / "old")
        (tmp_path / "home" / "deep").symlink_to(tmp_path / "work")

    before("b.md", swap)
    assert read(home, "deep/b.md") == "deep"


def test_a_file_that_becomes_a_link_before_it_is_opened(home: int, tmp_path: Path, before: Any) -> None:
    def swap() -> None:
        (tmp_path / "home" / "a.md").unlink()
        (tmp_path / "home" / "a.md").symlink_to(tmp_path / "work" / "b.md")

    before("a.md", swap)
    with pytest.raises(OSError, match="symbolic links"):
        read(home, "a.md")


def test_no_descriptor_is_left_open(home: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open, os.dup, os.close
    held: set[int] = set()

    def noted(descriptor: int) -> int:
        held.add(descriptor)
        return descriptor

    def close(descriptor: int) -> None:
        held.remove(descriptor)
        real[2](descriptor)

    monkeypatch.setattr(os, "open", lambda *args, **options: noted(real[0](*args, **options)))
    monkeypatch.setattr(os, "dup", lambda descriptor: noted(real[1](descriptor)))
    monkeypatch.setattr(os, "close", close)
    opened = open_beneath(home, "deep/b.md")
    assert held == {opened}
    os.close(opened)
    for path in ("deep/none/x", "deep/none", "deep", "../x"):
        with pytest.raises(OSError, match=r"\w"):
            open_beneath(home, path)
    assert held == set()
