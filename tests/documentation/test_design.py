"""The table of rooms in docs/design.md, which branches that are merged would double."""

from __future__ import annotations

import re

from tests.documentation.blocks import ROOT


def test_a_room_stands_once_in_the_table_of_its_package() -> None:
    _, *packages = (ROOT / "docs" / "design.md").read_text().split("\n### ")
    rooms = [re.findall(r"^\| (`[^|]*?) \|", package.partition("\n## ")[0], re.MULTILINE) for package in packages]
    assert sum(map(len, rooms)) > 50
    assert [room for package in rooms for room in package if package.count(room) > 1] == []
