"""A project copied for one fleet: other ports, the same lines, nothing that no fleet needs."""

from __future__ import annotations

import socket
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from pallas_testing.project import claims, copies, edits, fleet_file
from pallas_testing.project.claims import Claims, NothingFree
from pallas_testing.project.fleet_file import NoFleetFile

FLEET = """\
# ours
name: small
agents:
  harper: {module: agents.harper, port: 24101, depends_on: [tech_research, model]}
  tech_research:
    card: agents/tech_research.md  # keep
    port: 24102
services:
  model: {module: model, port: 24110}
  argos: {image: argos, port: 8000}
networks:
  mode: shared
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The agents.yaml of a project with more in it than a fleet needs."""
    folder = tmp_path / "project"
    for name in (
        "agents.lock",
        ".git/config",
        ".venv/pyvenv.cfg",
        ".venv/bin/python",
        ".mypy_cache/x",
        "agents/tech_research.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "agents.yaml").write_text(FLEET)
    (folder / "fastagent.config.yaml").write_text(
        "a: http://localhost:24110/v1\nb: http://example.test:24110\nc: 24110\n"
    )
    return folder / "agents.yaml"


def test_a_copy_has_ports_of_its_own_and_the_lines_of_the_original(project: Path, tmp_path: Path) -> None:
    held = Claims()
    copy = copies.copy(project, tmp_path / "copy", held, IPv4Network("10.213.16.0/20"))
    held.close()
    ports = [copy.port(member) for member in ("harper", "tech_research", "model", "registry")]
    assert len({*ports, 24101, 24102, 24110, 24200}) == 8
    assert copy.port("argos") is None
    assert "argos: {image: argos, port: 8000}" in copy.path.read_text(), "a port inside its container"
    lines = copy.path.read_text().splitlines()
    assert lines[5] == "    card: agents/tech_research.md  # keep"
    assert lines[-1] == f"registry_port: {copy.registry_port}"
    assert yaml.safe_load(copy.path.read_text())["networks"] == {"pool": "10.213.16.0/20", "mode": "shared"}
    assert project.read_text() == FLEET


@pytest.mark.parametrize("section", ["gateway: {agents: [a]}", "gateway:\n  agents: [a]\n  port: 24190"])
def test_a_gateway_has_a_port_of_its_own_too(tmp_path: Path, section: str) -> None:
    original = tmp_path / "project" / "agents.yaml"
    original.parent.mkdir()
    original.write_text(f"name: x\n{section}\nagents:\n  a: {{card: a.md, port: 24101}}\n")
    held = Claims()
    copy = copies.copy(original, tmp_path / "copy", held)
    held.close()
    assert copy.members == ("a", "gateway", "registry")
    port = copy.port("gateway")
    assert port not in (None, 24190)
    assert yaml.safe_load(copy.path.read_text())["gateway"] == {"agents": ["a"], "port": port}


def test_a_copy_has_what_a_fleet_needs_and_addresses_that_hold(project: Path, tmp_path: Path) -> None:
    held = Claims()
    copy = copies.copy(project, tmp_path / "copy", held)
    held.close()
    files = {path.relative_to(copy.path.parent).as_posix() for path in copy.path.parent.rglob("*") if path.is_file()}
    assert files == {"agents.yaml", "fastagent.config.yaml", "agents/tech_research.md"}
    text = copy.path.with_name("fastagent.config.yaml").read_text()
    assert text == f"a: http://localhost:{copy.port('model')}/v1\nb: http://example.test:24110\nc: 24110\n"


@pytest.mark.parametrize(
    ("key", "ports"),
    [("", [None, "new"]), (", port: 99999", [99999, "new"]), (", port: 24102", ["new", "new"])],
    ids=["missing", "none", "twice"],
)
def test_what_is_wrong_with_a_port_stays_wrong(tmp_path: Path, key: str, ports: list[object]) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "agents.yaml").write_text(
        f"name: x\nagents:\n  a: {{module: a{key}}}\n  b: {{module: b, port: 24102}}\n"
    )
    held = Claims()
    copy = copies.copy(tmp_path / "project" / "agents.yaml", tmp_path / "copy", held)
    held.close()
    assert [port if port in (None, 99999) else "new" for port in copy.agents.values()] == ports
    assert (copy.agents["a"] == copy.agents["b"]) == ("24102" in key)


def test_a_project_around_the_copy_is_copied_without_it(project: Path) -> None:
    (project.parent / "tmp" / "pytest-0").mkdir(parents=True)
    held = Claims()
    copy = copies.copy(project, project.parent / "tmp" / "pytest-0" / "copy", held)
    held.close()
    assert copy.path.is_file()
    assert not (copy.path.parent / "tmp").exists()


def test_the_file_says_who_calls_whom(project: Path) -> None:
    file = fleet_file.read(project)
    assert file.calls == {"harper": ("tech_research", "model"), "tech_research": ()}
    assert file.members == ("harper", "tech_research", "model", "argos", "registry")


@pytest.mark.parametrize("text", ["a: [", "\t:"])
def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "agents.yaml").write_text(text)
    with pytest.raises(NoFleetFile, match=r"agents\.yaml is no YAML: "):
        fleet_file.read(tmp_path / "agents.yaml")


def test_the_nearest_file_is_that_of_the_folder_or_above(project: Path) -> None:
    assert fleet_file.nearest(project.parent / "agents") == project


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: a}", "{networks: {pool: 2}, port: 1, name: a}"),
        ("{}", "{networks: {pool: 2}, port: 1, }"),
        ("port: 9 # nine", "port: 1 # nine\nnetworks: {pool: 2}\n"),
        ("port: [9]\nnetworks: {}\n", "port: [9]\nnetworks: {pool: 2, }\n"),
        ("networks: no\n", "networks: no\nport: 1\n"),
        ("- list\n", "- list\n"),
    ],
)
def test_values_are_set_where_they_stand(text: str, expected: str) -> None:
    assert edits.set_values(text, {("port",): 1, ("networks", "pool"): 2}) == expected


def test_no_two_fleets_have_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        monkeypatch.setattr(claims, "PORTS", range(taken, taken + 1))
        with pytest.raises(NothingFree):
            Claims().ports(1)
    first = Claims()
    assert first.ports(1) == [taken]
    with pytest.raises(NothingFree):
        Claims().ports(1)
    first.close()
    second = Claims()
    assert second.ports(1) == [taken]
    second.close()


def test_no_two_fleets_have_a_share_of_the_pool() -> None:
    first, second = Claims(), Claims()
    taken = [IPv4Network("10.213.0.0/17")]
    shares = [first.pool(taken), second.pool(taken)]
    assert not shares[0].overlaps(shares[1])
    assert not any(share.overlaps(network) for share in shares for network in taken)
    first.close()
    second.close()
