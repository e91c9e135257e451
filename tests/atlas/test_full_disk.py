"""A disk that is really full: a small one in memory, with the house on it, and a clerk who goes on asking."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from home_tools.home import Home, opened
from home_tools.problems import Problem
from home_tools.server import server
from home_tools.settings import Settings
from home_tools.timers import running
from mcp import Client

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk of 512 KiB, which takes root")

PATIENCE = 120.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty folder on a disk of its own, of 512 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,nr_inodes=200", "pallas-test", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def settings(disk: Path) -> Settings:
    return replace(Settings.read({}), state=disk)


def fill(disk: Path) -> Path:
    """Take what is left of a disk, to the last byte, and return what takes it."""
    hog = disk / "hog"
    descriptor = os.open(hog, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(descriptor, b"x" * size)
    finally:
        os.close(descriptor)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        (disk / "more").write_bytes(b"x")
    (disk / "more").unlink()
    return hog


def documents(disk: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in disk.rglob("*.md")}


async def told(client: Client, tool: str, **arguments: object) -> tuple[bool, str]:
    """Return whether a call is an error, and its words."""
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), result.content[0].text


async def test_a_full_disk_is_said_loses_nothing_and_holds_up_nothing_else(
    home: Home, clock, disk: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(running, "_LOOK", 0.01)
    note = {"path": "family-agent-config/tasks/home/notes/door.md", "text": "The spare key is with the neighbours."}
    async with Client(server(home)) as client:
        for tool, arguments in (("add_task", {"title": "Buy milk"}), ("write_note", note)):
            assert not (await told(client, tool, **arguments))[0]
        await told(client, "set_timer", seconds=60, label="tea")
        before = documents(disk)
        hog = fill(disk)
        changes = (
            ("add_task", {"title": "More"}),
            ("move_task", {"task": "buy-milk", "column": "done"}),
            ("comment_task", {"task": "buy-milk", "comment": "Two litres."}),
            ("append_note", {"path": note["path"], "text": "Or with us."}),
        )
        for tool, arguments in changes:
            failed, words = await told(client, tool, **arguments)
            assert (failed, "the disk is full: nothing was changed" in words) == (True, True), words
        assert documents(disk) == before
        failed, words = False, ""
        while not failed:  # what is written ahead has some room yet
            failed, words = await told(client, "set_timer", seconds=3600, label="x" * 200)
        assert "the disk is full; nothing was changed" in words
        # all that writes nothing goes on
        assert "Buy milk" in (await told(client, "list_tasks"))[1]
        assert "timer 1 (tea) fires on" in (await told(client, "list_timers"))[1]
        assert "The weather in Oslo" in (await told(client, "weather", location="Oslo"))[1]
        clock.time += 60
        firing = asyncio.create_task(home.timers.run())
        try:
            await until(lambda: "timers: the disk is full; nothing was changed" in capsys.readouterr().err)
            assert "timer 1 (tea) fires on" in (await told(client, "list_timers"))[1]
            hog.unlink()
            await until(lambda: [timer.id for timer in home.timers.store.all() if timer.fired] == [1])
        finally:
            firing.cancel()
            await asyncio.gather(firing, return_exceptions=True)
        assert (await told(client, "move_task", task="buy-milk", column="done"))[1] == "Buy milk is in done."


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


def test_a_server_that_starts_on_a_full_disk_has_nobody_move_its_timers_away(
    settings: Settings, clock, disk: Path
) -> None:
    first = opened(settings, clock)
    first.timers.store.add("timer", "tea", clock.now() + 60)
    first.timers.store.close()
    hog = fill(disk)
    with pytest.raises(Problem) as refused:
        opened(settings, clock)
    assert "timers.db" in str(refused.value)
    assert "is there room on its disk" in str(refused.value)
    assert "move it away" not in str(refused.value)
    hog.unlink()
    again = opened(settings, clock)
    assert [timer.label for timer in again.timers.store.all()] == ["tea"]
    again.timers.store.close()
