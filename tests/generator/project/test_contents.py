"""A container's digest changes with what it reads, and with nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pallas_contract.fleet import source
from pallas_gen.plan import Plan, build_plan
from pallas_gen.project import contents, load

FLEET = """\
name: x
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [model]}
  other: {card: agents/other.md, port: 8102, files: [data]}
services:
  model: {module: agents.model, port: 8103}
  vectors: {image: "qdrant/qdrant:v1", port: 6333, provides: other, files: [tuning.conf], url: "http://localhost:6333/"}
  plain: {image: "redis:8", port: 6379, provides: other, url: "http://localhost:6379/"}
gateway: {port: 8110, agents: [scout]}
"""
REGISTRATION = "registry: {registration: {tokens: {partners: {file: token}}}}\n"
EVERYONE = frozenset({"scout", "other", "model", "vectors", "registry", "gateway"})


@pytest.fixture
def folder(make, tmp_path: Path) -> Path:
    make(FLEET, fastagent__config__yaml="default_model: passthrough\n", tuning__conf="a=1\n", token="t" * 32)
    (tmp_path / "agents" / "other.md").write_text("---\ntype: agent\n---\nYou help.\n")
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "table.csv").write_text("1\n")
    return tmp_path


def plan_of(folder: Path) -> Plan:
    loaded = load.load(folder / "agents.yaml", {})
    return build_plan(loaded.fleet, loaded.config, loaded.project)


def received(folder: Path) -> dict[str, str]:
    plan = plan_of(folder)
    return contents.received(plan, contents.read(folder, plan))


def test_it_is_the_same_each_time_and_whenever_a_file_was_written(folder: Path) -> None:
    before = received(folder)
    assert before.keys() == EVERYONE
    for path in filter(Path.is_file, folder.rglob("*")):
        os.utime(path, (1, 1))
    (folder / "data" / "__pycache__").mkdir()
    (folder / "data" / "__pycache__" / "left.pyc").write_bytes(b"behind")
    assert received(folder) == before


@pytest.mark.parametrize(
    ("path", "old", "new", "concerned"),
    [
        ("agents/scout.py", "None", "1", {"scout"}),
        ("agents/other.md", "help", "talk", {"other"}),
        ("agents/model.py", "None", "1", {"model"}),
        ("data/deep/table.csv", "1", "2", {"other"}),
        ("tuning.conf", "1", "2", {"vectors"}),
        ("agents.yaml", "8101", "8111", {"scout", "registry"}),
        ("agents.yaml", "port: 8110", "port: 8111", {"gateway", "registry"}),
        ("agents.yaml", "name: x", "name: x # and a remark", {"registry"}),
        ("fastagent.config.yaml", "default_model: passthrough", "default_model: playback", EVERYONE - {"vectors"}),
        ("token", "tt", "uu", set()),
    ],
)
def test_a_file_concerns_those_who_read_it(folder: Path, path: str, old: str, new: str, concerned: set[str]) -> None:
    before = received(folder)
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new, 1))
    after = received(folder)
    assert {host for host in after if after[host] != before[host]} == concerned


def test_a_registry_that_would_forget_who_registered_follows_its_files_by_itself(folder: Path) -> None:
    (folder / "agents.yaml").write_text(FLEET + REGISTRATION)
    assert received(folder).keys() == EVERYONE - {"registry"}


def test_what_is_in_an_image_is_not_mounted(folder: Path) -> None:
    (folder / "agents.yaml").write_text(FLEET + "image: acme/fleet:1\n")
    plan = plan_of(folder)
    mounted = contents.read(folder, plan)
    assert contents.received(plan, mounted).keys() == {"registry", "gateway", "vectors"}
    assert contents.by_entry(plan, mounted).keys() == {"agents.yaml", "fastagent.config.yaml", "tuning.conf"}


def test_a_folder_is_one_entry_and_no_secret_or_pipe_is_read(folder: Path) -> None:
    os.mkfifo(folder / "data" / "pipe")
    plan = plan_of(folder)
    mounted = contents.read(folder, plan)
    assert mounted.files["data/pipe"] == ""
    assert list(contents.by_entry(plan, mounted)) == [
        "agents.yaml",
        "agents/model.py",
        "agents/other.md",
        "agents/scout.py",
        "data/",
        "fastagent.config.yaml",
        "tuning.conf",
    ]


def test_how_it_changed() -> None:
    recorded = {"a": "1", "b": "1", "c": "1"}
    assert contents.changes(recorded, {"a": "1", "b": "2", "d": "1"}) == {
        "b": "changed",
        "c": "was removed",
        "d": "was added",
    }
    assert contents.changes(recorded, recorded) == {}


def test_a_file_may_be_larger_than_any_text(folder: Path) -> None:
    before = received(folder)
    with (folder / "data" / "model.bin").open("wb") as file:
        file.truncate(source.MAX_BYTES * 3)
    assert received(folder)["other"] != before["other"]
