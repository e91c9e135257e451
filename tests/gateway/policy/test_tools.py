"""Names of tools with `*`."""

from __future__ import annotations

import pytest

from pallas_gateway.policy.tools import Tools


@pytest.mark.parametrize(
    ("written", "tool", "fits"),
    [
        ("delete_note", "delete_note", True),
        ("delete_note", "delete_notes", False),
        ("delete_note", "Delete_note", False),
        ("delete_*", "delete_", True),
        ("delete_*", "delete_note", True),
        ("delete_*", "undelete_note", False),
        ("*_note", "delete_note", True),
        ("*_note", "delete_notes", False),
        ("*", "anything", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "abc", True),
        ("a*b*c", "a-c", False),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("*a*a", "a", False),
        ("no.e", "note", False),
        ("n?te", "note", False),
        ("[n]ote", "note", False),
        ("**", "", True),
    ],
)
def test_a_star_is_any_characters_and_nothing_else_is_special(written: str, tool: str, fits: bool) -> None:
    assert (tool in Tools([written])) is fits


def test_one_that_fits_is_enough() -> None:
    assert "b1" in Tools(["a", "b*", "c"])
    assert "d" not in Tools(["a", "b*", "c"])
    assert "a" not in Tools([])


def test_many_stars_take_no_time() -> None:
    # a pattern of an engine that goes back takes years for this one
    assert "a" * 127 + "c" not in Tools(["*a" * 60 + "*b"])
