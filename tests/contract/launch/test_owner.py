"""Whose a registry is, by its own word and by the containers here; `tests/cli/running/test_owner.py` has each case."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_contract.launch import owner, run_files
from pallas_contract.launch.compose_containers import Stack
from pallas_contract.launch.owner import Owner

URL = "http://127.0.0.1:24200"
FILE = Path("/nowhere/agents.yaml")


def test_a_registry_says_whose_it_is() -> None:
    fleet = {"name": "desk", "placement": "local", "project": "ab"}
    assert owner.parse({"fleet": fleet}) == Owner("desk", "local", "ab")
    assert owner.parse({"fleet": {"name": "desk", "placement": "container"}}) == Owner("desk", "container")
    assert owner.parse({}) is None


@pytest.mark.parametrize(
    ("of_registry", "text"),
    [
        (None, ""),
        (Owner("desk", "local", run_files.project_id(FILE)), ""),
        (Owner("desk", "local", "ab"), f"fleet of this name, whose fleet file is not {FILE} here"),
        (Owner("hello", "container"), f"fleet, `hello`; {FILE} is `desk`"),
    ],
)
def test_processes_and_names_need_no_list_of_containers(of_registry: Owner | None, text: str) -> None:
    def stacks() -> list[Stack]:
        pytest.fail("asked for containers")

    assert owner.other(of_registry, URL, name="desk", file=FILE, stacks=stacks) == text


def test_a_stack_on_the_port_tells_its_fleet_file(tmp_path: Path) -> None:
    compose = tmp_path / "compose.yaml"
    compose.write_text("      PALLAS_AGENTS_CONFIG: /f\n      source: ./agents.yaml\n      target: /f\n")
    stack = Stack("desk", (compose,), frozenset({("127.0.0.1", 24200)}))
    containers = Owner("desk", "container")
    text = owner.other(containers, URL, name="desk", file=FILE, stacks=lambda: [stack])
    assert text == f"fleet of this name, that of {tmp_path}/agents.yaml in containers"
    for url, file in ((URL, tmp_path / "agents.yaml"), ("http://127.0.0.1:24300", FILE), ("https://a.example", FILE)):
        assert owner.other(containers, url, name="desk", file=file, stacks=lambda: [stack]) == ""


def test_the_remedy_names_the_file() -> None:
    assert f"give {FILE} other ports" in owner.remedy(FILE)
