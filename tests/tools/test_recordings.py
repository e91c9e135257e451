"""tools/recordings.py: pictures of terminals, of what commands printed."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import recordings

ROOT = Path(__file__).parents[2]


def test_a_picture_says_what_was_typed_and_printed_and_loads_nothing() -> None:
    picture = recordings.svg("a title", ["$ pallas status", "desk <ok>", "x" * 200])
    texts = [
        "".join(text.itertext()).replace("\xa0", " ")
        for text in ElementTree.fromstring(picture).iter()
        if text.tag.endswith("text")
    ]
    assert {"a title", "desk <ok>"} <= {text.strip() for text in texts}
    assert "pallas status" in " ".join(texts)
    assert any(text.endswith("…") for text in texts), "a line that is too long is cut, not broken"
    assert re.findall(r"url\((?!#)[^)]*\)|https?://(?!www.w3.org/2000/svg)", picture) == []
    assert picture == recordings.svg("a title", ["$ pallas status", "desk <ok>", "x" * 200])


def test_a_command_that_fails_ends_it(tmp_path: Path) -> None:
    with pytest.raises(recordings.Failed, match="exit 3 ended with 3"):
        list(recordings.spoken("exit 3", tmp_path))
    assert list(recordings.spoken("echo a; echo b >&2", tmp_path)) == ["$ echo a; echo b >&2", "a", "b"]


def test_every_picture_of_the_tutorial_is_made_here() -> None:
    named = re.findall(r"\]\(pictures/(tutorial-\w+)\.svg\)", (ROOT / "docs" / "tutorial.md").read_text())
    kept = {path.stem for path in (ROOT / "docs" / "pictures").glob("tutorial-*.svg")}
    source = (ROOT / "tools" / "recordings.py").read_text()
    assert set(named) == kept == set(re.findall(r'"(tutorial-\w+)": svg', source))
