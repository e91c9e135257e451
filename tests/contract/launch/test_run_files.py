"""The lock of a running fleet, by which other commands know of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_contract.launch import run_files


def test_each_fleet_file_of_a_folder_has_files_of_its_own(tmp_path: Path) -> None:
    one, other = run_files.of(tmp_path / "agents.yaml"), run_files.of(tmp_path / "b.yaml")
    assert one.lock == tmp_path / ".pallas" / "run" / "agents.lock"
    assert one.older_log == tmp_path / ".pallas" / "run" / "agents.log.1"
    assert {one.lock, one.log, one.older_log}.isdisjoint({other.lock, other.log, other.older_log})


def test_a_lock_names_its_process_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert run_files.holder(path) is None
    with run_files.locked(path) as is_ours:
        assert is_ours
        assert run_files.holder(path) == os.getpid()
        with run_files.locked(path) as is_ours_too:
            assert not is_ours_too
        assert run_files.holder(path) == os.getpid()
    assert run_files.holder(path) is None


def test_a_process_that_has_not_said_who_it_is_is_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with run_files.locked(path):
        path.write_text("")
        assert run_files.holder(path) == 0


def test_a_lock_names_the_registry_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert run_files.registry_of(path) == ""
    with run_files.locked(path, "http://127.0.0.1:24100"):
        assert run_files.holder(path) == os.getpid()
        assert run_files.registry_of(path) == "http://127.0.0.1:24100"
    assert run_files.registry_of(path) == ""
    with run_files.locked(path):
        assert run_files.registry_of(path) == ""


def test_a_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), run_files.locked(tmp_path / "none" / "lock"):
        pass


def test_a_copy_in_another_folder_is_another_project(tmp_path: Path) -> None:
    first = run_files.project_id(tmp_path / "first" / "agents.yaml")
    assert len(first) == 16
    assert first != run_files.project_id(tmp_path / "copy" / "agents.yaml")
    (tmp_path / "first").mkdir()
    (tmp_path / "link").symlink_to("first")
    assert first == run_files.project_id(tmp_path / "link" / "agents.yaml")
