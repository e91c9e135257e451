"""Hints for names that do not exist."""

from __future__ import annotations

from pallas_contract.validate import suggestions
from pallas_contract.validate.suggestions import Suggestions

NAMES = ["harper", "jarvis", "research"]


def test_the_nearest_or_all_there_are() -> None:
    assert Suggestions().hint("reserach", NAMES) == "did you mean `research`?"
    assert Suggestions().hint("zzz", NAMES) == "there are: harper, jarvis, research"
    assert Suggestions().hint("zzz", NAMES, "known keys") == "known keys: harper, jarvis, research"


def test_a_hint_does_not_list_a_whole_fleet() -> None:
    names = [f"agent{number:03}" for number in range(suggestions.MAX_LISTED + 5)]
    hint = Suggestions().hint("zzz", names)
    assert hint.startswith("there are: agent000, agent001, ")
    assert hint.endswith(f"{names[suggestions.MAX_LISTED - 1]} and 5 more")


def test_after_enough_comparisons_nothing_is_compared(monkeypatch) -> None:
    compared: list[int] = []
    monkeypatch.setattr(
        suggestions.difflib, "get_close_matches", lambda name, names, n: compared.append(len(names)) or []
    )
    hints = Suggestions()
    for number in range(1000):
        hints.hint(f"unknown{number}", ["x"] * 500)
    assert sum(compared) == suggestions.MAX_COMPARISONS


def test_a_name_of_a_megabyte_is_not_compared() -> None:
    assert Suggestions().hint("x" * 1_000_000, ["x" * 999_999]).startswith("there are: ")
