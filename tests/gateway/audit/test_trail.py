"""The files of the audit: continued after any end, bounded, and never half a record in the middle."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pallas_contract.documents import audit_check
from pallas_contract.documents.audit_check import Checked
from pallas_gateway.audit import trail as trail_module
from pallas_gateway.audit.trail import FILES, Trail
from pallas_service.sqlite_file import CannotStore

KEY = b"0123456789abcdef"
SIZE = 1 << 20


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def checked(folder: Path, key: bytes = KEY, *, whole: bool = True) -> Checked:
    files = [(path.name, lines(path)) for path in sorted(folder.iterdir())]
    return audit_check.check(files, key, whole=whole)


def written(folder: Path, count: int, *, size: int = SIZE, **fields: str) -> None:
    """Write `count` records, and end."""
    trail = Trail(folder, KEY, size=size)
    for number in range(count):
        trail.append({"event": "decision", "number": number, **fields})
    trail.close()


def test_a_chain_goes_on_after_the_end_of_its_process(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "audit"
    written(folder, 3)
    written(folder, 2)
    result = checked(folder)
    assert (result.problems, result.records) == ([], 5)
    assert [path.name for path in folder.iterdir()] == ["audit-000000000001.jsonl"]
    assert (folder.stat().st_mode & 0o777, next(folder.iterdir()).stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("whole", [0, 1, 2])
def test_half_a_record_is_cut_off_at_the_start(tmp_path: Path, whole: int) -> None:
    written(tmp_path, whole)
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b'{"seq":3,"eve')
    trail = Trail(tmp_path, KEY, size=SIZE)
    assert (trail.cut, trail.head.seq) == (13, whole)
    trail.append({"event": "started"})
    trail.close()
    assert (checked(tmp_path).problems, checked(tmp_path).records) == ([], whole + 1)


def test_it_takes_no_more_room_than_it_has(tmp_path: Path) -> None:
    size = FILES * (64 << 10)
    written(tmp_path, 1400, size=size, text="x" * 500)
    files = sorted(tmp_path.iterdir())
    assert len(files) == FILES
    assert sum(path.stat().st_size for path in files) < size + (64 << 10)
    result = checked(tmp_path)
    assert result.problems == []
    assert result.head is not None
    assert result.head.seq > 1400  # some records say what was removed
    files[0].unlink()
    assert [problem.code for problem in checked(tmp_path).problems] == ["PAL652"]


async def test_the_disk_is_waited_for_in_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail(tmp_path, KEY, size=FILES * (64 << 10))
    waits: list[tuple[str, bool, int]] = []
    for name in ("fdatasync", "fsync"):

        def waited(file: int, name: str = name, call: object = getattr(os, name)) -> None:
            here = threading.current_thread() is threading.main_thread()
            waits.append((name, here, len(list(tmp_path.iterdir()))))
            call(file)  # type: ignore[operator]

        monkeypatch.setattr(trail_module.os, name, waited)
    while len(list(tmp_path.iterdir())) < FILES + 2:
        trail.append({"event": "decision", "text": "x" * 5000})
    assert (waits, trail.is_behind) == ([], True)
    await trail.sync()
    # each file that was begun, the folder, and only then the two oldest are removed
    assert waits == [("fdatasync", False, FILES + 2)] * (FILES + 2) + [("fsync", False, FILES + 2)]
    assert (len(list(tmp_path.iterdir())), trail.is_behind) == (FILES, False)
    assert checked(tmp_path).problems == []
    trail.close()


async def test_what_could_not_be_synced_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail(tmp_path, KEY, size=FILES * (64 << 10))
    while len(list(tmp_path.iterdir())) < FILES + 1:
        trail.append({"event": "decision", "text": "x" * 5000})

    def fail(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(trail_module.os, "fdatasync", fail)
        with pytest.raises(CannotStore):
            await trail.sync()
    assert len(list(tmp_path.iterdir())) == FILES + 1
    await trail.sync()
    assert len(list(tmp_path.iterdir())) == FILES
    trail.close()


def test_a_file_that_was_begun_and_never_written_to_is_gone_on_with(tmp_path: Path) -> None:
    written(tmp_path, 2)
    (tmp_path / "audit-000000000003.jsonl").touch()
    written(tmp_path, 1)
    assert (checked(tmp_path).problems, checked(tmp_path).records) == ([], 3)


def test_under_another_key_a_new_chain_begins_and_the_old_one_stays(tmp_path: Path) -> None:
    written(tmp_path, 3)
    trail = Trail(tmp_path, b"another key 0123", size=SIZE)
    assert trail.broken == "the last record of audit-000000000001.jsonl was changed, or written with another key"
    assert trail.append({"event": "started"}) == 4
    trail.close()
    first, second = sorted(tmp_path.iterdir())
    assert second.name == "audit-000000000004.jsonl"
    assert audit_check.check([("old", lines(first))], KEY, whole=True).problems == []
    (problem,) = audit_check.check([("new", lines(second))], b"another key 0123", whole=True).problems
    assert problem.code == "PAL652"  # the old one is missed, whoever took it away
    assert [problem.code for problem in checked(tmp_path).problems] == ["PAL650"]


def test_what_is_longer_than_any_record_is_let_be(tmp_path: Path) -> None:
    written(tmp_path, 2)
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b"x" * (1 << 17))
    size = path.stat().st_size
    written(tmp_path, 1)
    assert (path.stat().st_size, len(list(tmp_path.iterdir()))) == (size, 2)


def test_a_file_that_somebody_removes_is_missed(tmp_path: Path) -> None:
    trail = Trail(tmp_path, KEY, size=SIZE)
    trail.append({"event": "decision"})
    next(tmp_path.iterdir()).unlink()
    trail.append({"event": "decision"})
    trail.close()
    assert [path.name for path in tmp_path.iterdir()] == ["audit-000000000002.jsonl"]
    assert [problem.code for problem in checked(tmp_path).problems] == ["PAL652"]


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail(tmp_path, KEY, size=SIZE)
    trail.append({"event": "decision"})
    with monkeypatch.context() as patched:
        write = os.write
        patched.setattr(trail_module.os, "write", lambda file, line: write(file, line[:20]))
        with pytest.raises(CannotStore, match="no space left"):
            trail.append({"event": "decision"})

        def full(file: int, line: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(trail_module.os, "write", full)
        with pytest.raises(CannotStore, match=str(tmp_path)):
            trail.append({"event": "decision"})
    assert trail.append({"event": "decision"}) == 2
    trail.close()
    assert (checked(tmp_path).problems, checked(tmp_path).records) == ([], 2)


def test_two_gateways_do_not_share_it(tmp_path: Path) -> None:
    trail = Trail(tmp_path, KEY, size=SIZE)
    with pytest.raises(CannotStore, match="another gateway uses it"):
        Trail(tmp_path, KEY, size=SIZE)
    trail.close()
    Trail(tmp_path, KEY, size=SIZE).close()


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("")
    with pytest.raises(CannotStore, match=str(tmp_path / "audit")):
        Trail(tmp_path / "audit", KEY, size=SIZE)


_WRITER = """
import asyncio, sys
from pathlib import Path
from pallas_gateway.audit.trail import Trail

async def main():
    trail = Trail(Path(sys.argv[1]), b"0123456789abcdef", size=1 << 19)
    async def load():
        while True:
            trail.append({"event": "decision", "text": "x" * 300})
            await asyncio.sleep(0)
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(load())
        while True:
            await trail.sync()

asyncio.run(main())
"""


def test_the_chain_is_whole_after_kill_9_under_load(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)]) as writer:
        ends = time.monotonic() + 120
        # in the middle of its work, with files that are begun and removed
        while len(list(tmp_path.iterdir())) < 4:
            assert writer.poll() is None
            assert time.monotonic() < ends
            time.sleep(0.01)
        writer.kill()
    written(tmp_path, 1)
    result = checked(tmp_path)
    assert result.problems == []
    assert result.records > 100
