"""Tasks as Markdown files: what is written stays, whoever writes at the same time, and whatever the disk does."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from home_tools.files import folder as files
from home_tools.files.board import FOLDER, Board
from home_tools.problems import Full, Malformed, NotThere, Problem

WRITTEN = """\
---
# Somebody has written this by hand.
title: "Mend: the roof"
assigned:   [anna,
  ben]
status: todo  # for now
priority: high
---
Before *winter*.
"""


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path, lambda: date(2026, 11, 23))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / FOLDER).mkdir(parents=True)
    return tmp_path / FOLDER


def only_documents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_task_is_a_markdown_file(board: Board, folder: Path) -> None:
    task = board.add("Buy  milk: two\nlitres", "Of the *good* sort.", "high")
    assert (task.id, task.title, task.column) == ("buy-milk-two-litres", "Buy milk: two litres", "todo")
    assert (folder / "buy-milk-two-litres.md").read_text() == (
        "---\ntitle: 'Buy milk: two litres'\nstatus: todo\npriority: high\ncreated: '2026-11-23'\n---\n"
        "Of the *good* sort.\n"
    )
    assert (folder / "buy-milk-two-litres.md").stat().st_mode & 0o777 == 0o600
    assert [board.add("Buy milk", "", "low").id for _ in range(2)] == ["buy-milk", "buy-milk-2"]
    assert board.add("!!!", "", "low").id == "task"


def test_what_somebody_has_written_by_hand_stays(board: Board, folder: Path) -> None:
    (folder / "roof.md").write_text(WRITTEN)
    assert board.move("roof", "doing").column == "doing"
    assert (folder / "roof.md").read_text() == WRITTEN.replace("status: todo  # for now", "status: doing")
    board.comment("Roof", "The ladder\nis at the neighbours.")
    assert (folder / "roof.md").read_text().endswith("*winter*.\n\n- 2026-11-23: The ladder is at the neighbours.\n")
    (folder / "bare.md").write_text("---\r\ntitle: Bare\r\n---\r\n")
    assert (board.move("bare", "done").column, board.move("bare", "doing").column) == ("done", "doing")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Just text.", "bad.md has no head: it begins with `---`"),
        (b"---\ntitle: [\n---\n", "bad.md has a head that is no YAML, at line "),
        (b"---\n- a\n---\n", "bad.md has a head that is no list of `key: value`"),
        (b"---\nstatus: todo\n---\n", "bad.md: `title` is missing"),
        (b"---\ntitle: x\nstatus: later\n---\n", "bad.md: `status: later` is none of todo, doing, done"),
        (b"---\ntitle: x\nstatus: [todo]\n---\n", "bad.md: `status: ['todo']` is none of"),
        (b"---\ntitle: x\npriority: 1\n---\n", "bad.md: `priority: 1` is none of high, medium, low"),
        (b"---\ntitle: \xff\n---\n", "bad.md is not UTF-8, at byte 11: convert it"),
        (b"---\ntitle: x\n---\n" + b"x" * files.LONGEST, "bad.md has 256 KiB, and may have 256: split it"),
    ],
)
def test_a_document_that_is_no_task_is_named_and_hides_no_other(
    board: Board, folder: Path, content: bytes, said: str
) -> None:
    board.add("Buy milk", "", "medium")
    (folder / "bad.md").write_bytes(content)
    shown = board.shown()
    assert [task.id for task in shown.tasks] == ["buy-milk"]
    (problem,) = shown.problems
    assert problem.startswith(said)
    with pytest.raises(Malformed):
        board.move("bad", "done")
    with pytest.raises(Malformed):
        board.comment("bad", "x")
    assert (folder / "bad.md").read_bytes() == content


def test_a_file_of_a_gigabyte_is_not_read(board: Board, folder: Path) -> None:
    with (folder / "big.md").open("wb") as file:
        file.truncate(1 << 30)
    assert board.shown().problems == ["big.md has 1,048,576 KiB, and may have 256: split it"]


def test_links_and_pipes_are_no_tasks(board: Board, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("---\ntitle: secret\n---\n")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(folder / "pipe.md")
    assert board.shown().tasks == []
    with pytest.raises(NotThere):
        board.move("link", "done")
    outside = tmp_path / "outside"
    (folder.parent.parent).rename(outside)
    (tmp_path / "family-agent-config").symlink_to(outside)
    with pytest.raises(Problem, match="cannot be used"):
        board.shown()


def test_many_writers_of_one_task_lose_nothing(tmp_path: Path, board: Board, folder: Path) -> None:
    board.add("Buy milk", "", "medium")
    others = [Board(tmp_path, lambda: date(2026, 11, 23)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: others[n % 4].comment("buy-milk", f"line {n}"), range(40)))
        list(pool.map(lambda n: others[n % 4].add("The same", "", "low"), range(20)))
    (milk,) = [task for task in board.shown().tasks if task.id == "buy-milk"]
    assert sorted(milk.text.split("\n\n")) == sorted(f"- 2026-11-23: line {n}" for n in range(40))
    assert len(only_documents(folder)) == 21


def test_an_editor_that_saves_in_between_is_not_written_over(board: Board, folder: Path, monkeypatch) -> None:
    board.add("Buy milk", "", "medium")
    path = folder / "buy-milk.md"
    beside, saved = files._beside, []

    def and_an_editor_saves(*args: object):
        if not saved:
            saved.append(path.write_text(path.read_text() + "By hand.\n"))
        return beside(*args)

    monkeypatch.setattr(files, "_beside", and_an_editor_saves)
    assert board.move("buy-milk", "done").text == "By hand."
    assert "status: done" in path.read_text()
    monkeypatch.setattr(files, "_beside", lambda *args: (path.write_text(path.read_text() + "x\n"), beside(*args))[1])
    with pytest.raises(Problem, match=r"buy-milk\.md is being written by another program: try again"):
        board.move("buy-milk", "todo")


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_changes_nothing(board: Board, folder: Path, monkeypatch, call: str) -> None:
    board.add("Buy milk", "", "medium")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if call == "write":
        monkeypatch.setattr(files, "open", lambda descriptor, mode, **options: NoRoom(descriptor), raising=False)
        monkeypatch.setattr(files, "_read", lambda *_: before["buy-milk.md"].decode())
    else:
        monkeypatch.setattr(files.os, "fsync", full)
    for change in (lambda: board.move("buy-milk", "done"), lambda: board.add("More", "", "low")):
        with pytest.raises(Full, match="the disk is full: nothing was changed"):
            change()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    assert board.move("buy-milk", "done").column == "done"


class NoRoom:
    """A file on a disk that takes half of what is written."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> NoRoom:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def write(self, content: bytes) -> None:
        os.write(self.descriptor, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_board_has_an_end(board: Board, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MOST", 3)
    board.add("One", "", "low")
    board.add("Two", "", "low")
    with pytest.raises(Full, match="has 3 documents: delete some"):
        board.add("Three", "", "low")
    board.delete("One")
    assert board.add("Three", "", "low").id == "three"
    with pytest.raises(NotThere, match="there is no task `one`, only three, two"):
        board.delete("one")


async def test_the_tools_of_the_board(call) -> None:
    added = await call("add_task", title="Buy milk")
    assert added.content[0].text == "Task buy-milk is on the board, in todo, with priority medium."
    assert (await call("add_task", title="Roof", priority="high")).is_error is False
    listed = await call("list_tasks")
    assert listed.content[0].text == "todo: Roof (roof, high), Buy milk (buy-milk, medium)"
    assert [task["id"] for task in listed.structured_content["tasks"]] == ["roof", "buy-milk"]
    assert (await call("move_task", task="Buy milk", column="done")).content[0].text == "Buy milk is in done."
    assert (await call("list_tasks", column="done")).content[0].text == "done: Buy milk (buy-milk, medium)"
    assert (await call("comment_task", task="roof", comment="Soon.")).content[0].text == "Roof has your comment."
    assert (await call("delete_task", task="roof")).content[0].text == "roof is deleted."
    assert (await call("delete_task", task="../../etc/passwd")).is_error
