"""What a running fleet leaves for other commands: a lock, and its output in a file that stays small."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_agent_runtime.local import record
from pallas_contract.launch import run_files


def test_a_run_is_locked_and_its_output_written_down(tmp_path: Path) -> None:
    files = run_files.of(tmp_path / "agents.yaml")
    with record.running(tmp_path / "agents.yaml") as log:
        assert log is not None
        assert run_files.holder(files.lock) == os.getpid()
        log.write("desk", "|", "one")
        log.write("desk", ":", "two\n  three")
        assert files.log.read_text() == "desk | one\ndesk : two\ndesk :   three\n"
    assert run_files.holder(files.lock) is None
    assert files.log.stat().st_mode & 0o777 == 0o600
    assert (files.folder / ".gitignore").read_text() == "*\n"
    with record.running(tmp_path / "agents.yaml"):
        assert files.log.read_text() == ""


def test_a_file_that_is_too_large_is_put_aside(tmp_path: Path) -> None:
    files = run_files.of(tmp_path / "agents.yaml")
    files.folder.mkdir(parents=True)
    log = record.Log(files, longest=20)
    for number in range(5):
        log.write("desk", "|", f"{number}")
    log.close()
    assert files.older_log.read_text() == "desk | 0\ndesk | 1\n".replace("0", "2").replace("1", "3")
    assert files.log.read_text() == "desk | 4\n"


def test_a_run_begins_with_a_file_of_its_own_and_nothing_of_the_one_before(tmp_path: Path) -> None:
    files = run_files.of(tmp_path / "agents.yaml")
    files.folder.mkdir(parents=True)
    log = record.Log(files, longest=10)
    for line in ("a line", "another"):
        log.write("desk", "|", line)
    log.close()
    assert files.older_log.exists()
    with files.log.open() as followed:
        record.Log(files).close()
        assert not files.older_log.exists()
        assert os.fstat(followed.fileno()).st_ino != files.log.stat().st_ino


@pytest.mark.parametrize("lines", [0, 1])
def test_a_disk_that_fails_stops_no_fleet(lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = run_files.of(tmp_path / "agents.yaml")
    files.folder.mkdir(parents=True)
    log = record.Log(files, longest=10)
    monkeypatch.setattr(record.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
    for _ in range(lines + 2):
        log.write("desk", "|", "a line")
    log.close()


def test_a_folder_that_cannot_be_written_to_has_no_record(tmp_path: Path) -> None:
    (tmp_path / ".pallas").write_text("a file")
    with record.running(tmp_path / "agents.yaml") as log:
        assert log is None


def test_a_second_fleet_on_the_file_leaves_the_first_one_its_log(tmp_path: Path) -> None:
    with record.running(tmp_path / "agents.yaml") as log:
        assert log is not None
        log.write("desk", "|", "one")
        with record.running(tmp_path / "agents.yaml") as other:
            assert other is None
        assert run_files.of(tmp_path / "agents.yaml").log.read_text() == "desk | one\n"
