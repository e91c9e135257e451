"""Keys that some reader of JSON takes for each other."""

from __future__ import annotations

import pytest

from pallas_gateway.policy.keys import folded


@pytest.mark.parametrize("key", ["NAME", "Name", "name\0", "Name\0\0"])
def test_case_and_zeros_tell_no_keys_apart(key: str) -> None:
    assert folded(key) == folded("name")


@pytest.mark.parametrize(("key", "other"), [("param\u017f", "params"), ("tas\u212aId", "taskId"), ("ur\u0131", "uri")])
def test_nor_do_letters_that_have_an_ascii_one_in_the_other_case(key: str, other: str) -> None:
    assert folded(key) == folded(other)


def test_other_keys_are_others() -> None:
    assert len({folded(key) for key in ("name", "names", "na\0me", "\0name", "n\u00e4me")}) == 5
