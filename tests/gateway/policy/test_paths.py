"""Paths in arguments: every way to write one that leads elsewhere is refused, and every plain one passes."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from pallas_gateway.policy import paths

HOME = [paths.parts("tasks/home/")]


@pytest.mark.parametrize(
    "path",
    [
        "tasks/home",
        "tasks/home/",
        "tasks/home/a.md",
        "./tasks/home/a.md",
        "tasks//home///a.md",
        "tasks/./home/a.md",
        "tasks/home/b/../a.md",
        "tasks/work/../home/a.md",
        "tasks/home/50%.md",
        "tasks/home/50%25.md",
        "tasks/home/..a",
        "tasks/home/a b.md",
        "tasks/home/" + unicodedata.normalize("NFD", "Einkäufe.md"),
        "tasks/home/%C3%A4.md",
        "tasks/home/50\uff05.md",
        "tasks/home/\uff0541.md",
        ["tasks/home/a", "tasks/home/b"],
    ],
)
def test_what_lies_in_the_folder_passes(path: Any) -> None:
    assert paths.lies_in(path, HOME)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "tasks",
        "tasks/homes/a",
        "tasks/home2",
        "/tasks/home/a",
        "//tasks/home/a",
        "tasks/home/..",
        "tasks/home/../work/a",
        "tasks/home/../../../etc/passwd",
        "../tasks/home/a",
        "x/../../tasks/home/a",
        "tasks/home//../work/a",
        "tasks/home/./../work/a",
        "tasks/home/%2e%2e/work/a",
        "tasks/home/%2E./work/a",
        "tasks/home%2f..%2fwork/a",
        "tasks/home/%252e%252e/work/a",
        "tasks/home/%25252525252e%25252525252e/work",
        "tasks%2fhome/a",
        "tasks/home/%c0%ae%c0%ae/a",
        "tasks/home/\uff0e\uff0e/work/a",
        "tasks/home/\u2024\u2024/work/a",
        "tasks/home\uff0f..\uff0fwork",
        "tasks/home/\uff052e\uff052e/work/a",
        "tasks/home/\uff05\uff12\uff45\uff05\uff12\uff45/work/a",
        "tasks/home/%EF%BC%852e%EF%BC%852e/work/a",
        "tasks/home/%EF%BC%85252e%EF%BC%85252e/work/a",
        "tasks/home/.. /work/a",
        "tasks/home/... /work/a",
        "tasks/home/..\\..\\work",
        "tasks\\home\\a",
        "tasks/home/a\x00.md",
        "tasks/home/a%00.md",
        "tasks/home/a\n.md",
        "tasks/home/\ud800",
        "Tasks/home/a",
        "tasks/HOME/a",
        "tas\u212as/home/a",
        "ta\u017fks/home/a",
        "tasks/h\u043eme/a",
        "file:///tasks/home/a",
        "~/tasks/home/a",
        "tasks/home/" + "a" * 5000,
        [],
        ["tasks/home/a", "tasks/work/b"],
        ["tasks/home/a", 7],
        {"path": "tasks/home/a"},
        None,
        7,
        True,
    ],
)
def test_what_does_not_or_may_not_is_refused(path: Any) -> None:
    assert not paths.lies_in(path, HOME)


def test_a_folder_in_one_form_of_unicode_is_not_the_one_in_another() -> None:
    folders = [paths.parts("Einkäufe/")]
    assert paths.lies_in("Einkäufe/a", folders)
    # Linux has both beside each other
    assert not paths.lies_in(unicodedata.normalize("NFD", "Einkäufe/a"), folders)


def test_absolute_folders_are_for_absolute_paths() -> None:
    folders = [paths.parts("/srv/notes")]
    assert paths.lies_in("/srv/notes/a", folders)
    assert paths.lies_in("//srv//notes/a", folders)
    assert not paths.lies_in("srv/notes/a", folders)
    assert not paths.lies_in("/srv/notes/../../srv2", folders)
    assert not paths.lies_in("/../srv/notes/a", folders)


def test_all_readings_are_in_one_folder() -> None:
    folders = [paths.parts("one/"), paths.parts("two/")]
    assert paths.lies_in(["one/x", "two/x"], folders)
    # one file to a tool that decodes, another to one that does not
    assert not paths.lies_in("one/%2e%2e/two/x", folders)


@pytest.mark.parametrize("paths_", [["tasks/a"] * (paths.MOST + 1), ["tasks/" + "a" * 4000] * 5])
def test_a_list_that_takes_long_to_judge_is_refused(paths_: list[str]) -> None:
    folders = [paths.parts("tasks")]
    assert all(paths.lies_in(path, folders) for path in paths_[:1])
    assert not paths.lies_in(paths_, folders)
