"""Who made the containers of a compose project."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.launch import compose_containers


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The compose files of a project and of its copy."""
    paths = (tmp_path / "desk" / "compose.yaml", tmp_path / "copy, of desk" / "compose.yaml")
    for path in paths:
        path.parent.mkdir()
        path.touch()
    return paths


def test_one_command_lists_kind_and_files_of_each() -> None:
    command = compose_containers.listing("id=a", "id=b")
    assert command[:4] == ["docker", "ps", "--all", "--format"]
    form = '{{.Label "io.pallas-kit.kind"}}\t{{.Label "com.docker.compose.project.config_files"}}'
    assert command[4:] == [form, "--filter", "id=a", "--filter", "id=b"]


def test_containers_of_a_copy_are_another_file_s(files: tuple[Path, Path]) -> None:
    desk, copy = files
    listed = f"agent\t{desk}\nregistry\t{desk}\n"
    assert compose_containers.other_file(listed, copy) == desk
    assert compose_containers.other_file(listed, desk) is None
    assert compose_containers.other_file(f"agent\t{copy}\n", desk) == copy
    assert compose_containers.other_file("", desk) is None


def test_a_file_that_overrides_changes_nothing(files: tuple[Path, Path]) -> None:
    desk, copy = files
    listed = f"agent\t{desk},{desk.parent}/compose.override.yaml\n"
    assert compose_containers.other_file(listed, copy) == desk
    assert compose_containers.other_file(listed, desk) is None


def test_the_same_file_by_another_path_is_no_other(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(files[0].parent)
    assert compose_containers.other_file(f"agent\t{tmp_path}/link/compose.yaml\n", files[0]) is None


def test_a_folder_that_was_moved_is_no_other(files: tuple[Path, Path]) -> None:
    assert compose_containers.other_file("agent\t/nowhere/compose.yaml\n", files[0]) is None
    assert compose_containers.other_file("agent\t\n", files[0]) is None


def test_servers_of_other_people_keep_their_first_label_and_do_not_count(files: tuple[Path, Path]) -> None:
    desk, copy = files
    assert compose_containers.other_file(f"service\t{desk}\nagent\t{copy}\n", copy) is None
