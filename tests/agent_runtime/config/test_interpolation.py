"""`${NAME}` references."""

from __future__ import annotations

import pytest

from pallas_agent_runtime.config import interpolation

TREE = {"a": "${SET}", "b": {"c": ["x", "${GONE}/${SET}"]}, "d": "${GONE:default}", "e": 1}


def test_unset_names_the_path_of_what_has_neither_value_nor_default() -> None:
    assert list(interpolation.unset(TREE, {"SET": "1"})) == [(("b", "c", 1), "GONE")]


def test_without_drops_paths_and_writes_defaults_as_fast_agent_reads_them() -> None:
    tree = {"a": ["1", "2"], "b": "${X:-y}", "c": {"d": "z"}}
    assert interpolation.without(tree, frozenset({("a", 0), ("c", "d")})) == {"a": ["2"], "b": "${X:y}", "c": {}}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [("${SET}", "1"), ("a${SET}b${SET}", "a1b1"), ("${GONE}", "${GONE}"), ("${GONE:d}", "d"), ("${SET:d}", "1")],
)
def test_expand(text: str, expanded: str) -> None:
    assert interpolation.expand(text, {"SET": "1"}) == expanded
