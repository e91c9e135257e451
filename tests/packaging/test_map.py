"""docs/design.md is the map: every room is on it, and a newcomer can read it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "pallas_cli": ROOT / "cli",
    "pallas_contract": ROOT / "contract",
    "pallas_service": ROOT / "services" / "common",
    "pallas_gateway": ROOT / "services" / "gateway",
    "pallas_registry": ROOT / "services" / "registry",
    "pallas_agent_runtime": ROOT / "services" / "agent-runtime",
    "pallas_gen": ROOT / "generator",
    "pallas_testing": ROOT / "testing",
}
MAP = (ROOT / "docs" / "design.md").read_text()
LONGEST = 500
"""Most characters of a paragraph, a list item or a row."""


def table(package: str) -> str:
    """Return the table of one package, from its heading to the next."""
    return MAP.partition(f"### `{package}`\n")[2].partition("\n#")[0]


def rooms(package: str) -> set[str]:
    """Return the rooms of a package: its folders with a slash, and the modules beside them."""
    folder = PACKAGES[package] / package
    folders = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    return folders | {path.stem for path in folder.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_is_on_the_map_and_nothing_else(package: str) -> None:
    first_cells = re.findall(r"^\| (`.*?`) \|", table(package), re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", " ".join(first_cells))) == rooms(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_is_a_warehouse(package: str) -> None:
    folder = PACKAGES[package] / package
    counts = {str(path): len(list(path.glob("*.py"))) - 1 for path in [folder, *folder.rglob("*/")]}
    assert {path: count for path, count in counts.items() if count > 11} == {}


def test_no_paragraph_of_the_map_is_long() -> None:
    prose = re.sub(r"```.*?```", "", MAP, flags=re.DOTALL)
    paragraphs = re.split(r"\n\s*\n|\n(?=[-|#*])", prose)
    assert [paragraph[:80] for paragraph in paragraphs if len(paragraph) > LONGEST] == []
