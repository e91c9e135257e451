"""Who made the containers of a compose project."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.launch import compose_containers
from pallas_contract.launch.compose_containers import Stack


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


def written(folder: Path, *, fleet: str = "../agents.yaml") -> Path:
    """Write the part of a compose file that tells the fleet file, as pallas-gen does."""
    file = folder / "compose.yaml"
    text = f"""\
services:
  registry:
    environment:
      PALLAS_AGENTS_CONFIG: /project/{Path(fleet).name}
    volumes:
    - type: bind
      source: "../fastagent.config.yaml"
      target: /project/fastagent.config.yaml
    - type: bind
      source: "{fleet}"
      target: /project/{Path(fleet).name}
"""
    file.write_text(text)
    return file


def test_a_compose_file_tells_its_fleet_file(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    folder.mkdir()
    assert compose_containers.fleet_file(written(folder)) == tmp_path / "agents.yaml"
    assert compose_containers.fleet_file(written(folder, fleet="../a$$b/f.yaml")) == tmp_path / "a$b" / "f.yaml"
    own = folder / "own.yaml"
    for text in (
        "",
        "include: [compose.yaml]\n",
        written(folder).read_text().replace("/project/agents", "/other/x", 1),
    ):
        own.write_text(text)
        assert compose_containers.fleet_file(own) is None


def test_one_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    """Those of all users of the machine are listed."""
    for unreadable in (tmp_path, tmp_path / "gone.yaml"):
        assert compose_containers.fleet_file(unreadable) is None
    assert Stack("a", (tmp_path,)).fleet_file is None


def test_a_quoted_text_that_is_no_json_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text('      PALLAS_AGENTS_CONFIG: /project/f\n      source: "a\\x20b"\n      target: /project/f\n')
    assert compose_containers.fleet_file(file) == tmp_path / '"a\\x20b"'


def test_registries_of_all_stacks_are_listed_with_files_and_ports(tmp_path: Path, files: tuple[Path, Path]) -> None:
    desk, copy = files
    assert compose_containers.registries()[-1] == "label=io.pallas-kit.kind=registry"
    override = desk.with_name("compose.override.yaml")
    override.touch()
    ports = "127.0.0.2:24200->8080/tcp, [::1]:24200->8080/tcp, 9090/tcp"
    everywhere = "0.0.0.0:24201->8080/tcp, :::24201->8080/tcp"
    listed = f"desk\t{desk},{override}\t{ports}\nb\t/nowhere/compose.yaml\t\na\t{copy}\t{everywhere}\nc\n"
    found = list(compose_containers.stacks(listed))
    assert found == [
        Stack("a", (copy,), frozenset({("127.0.0.1", 24201), ("::1", 24201)})),
        Stack("desk", (desk, override), frozenset({("127.0.0.2", 24200), ("::1", 24200)})),
    ]
    assert [stack.ports for stack in found] == [{24201}, {24200}]
    assert list(compose_containers.stacks("")) == []
    (tmp_path / "desk" / "deploy").mkdir()
    assert Stack("a", (override, written(desk.parent / "deploy"))).fleet_file == desk.parent / "agents.yaml"
    assert Stack("a", (override,)).fleet_file is None


@pytest.mark.parametrize(
    ("dotenv", "environ", "name"),
    [
        (None, {}, "desk"),
        ("A=1\n", {}, "desk"),
        ("COMPOSE_PROJECT_NAME=second\n", {}, "second"),
        ("COMPOSE_PROJECT_NAME=one\n export COMPOSE_PROJECT_NAME = 'second' # why\n", {}, "second"),
        ("#COMPOSE_PROJECT_NAME=second\nCOMPOSE_PROJECT_NAME=\n", {}, "desk"),
        ("COMPOSE_PROJECT_NAME=second\n", {"COMPOSE_PROJECT_NAME": "third"}, "third"),
    ],
)
def test_the_name_of_a_project_is_the_variables_before_the_files(
    dotenv: str | None, environ: dict[str, str], name: str, tmp_path: Path
) -> None:
    if dotenv is not None:
        (tmp_path / ".env").write_text(dotenv)
    assert compose_containers.project_name("desk", tmp_path, environ) == name
