"""Callers known by a token; the token itself is not kept."""

from __future__ import annotations

import pytest

from pallas_service.access.static_tokens import StaticTokens

TOKENS = StaticTokens({"ui": "one", "harper": "two"})


@pytest.mark.parametrize(
    ("token", "caller"), [("one", "ui"), ("two", "harper"), ("", None), ("on", None), ("ONE", None), ("\udcff", None)]
)
def test_whose_token_it_is(token: str, caller: str | None) -> None:
    assert TOKENS.caller(token) == caller


def test_the_tokens_are_not_kept() -> None:
    assert "one" not in str(vars(TOKENS))
