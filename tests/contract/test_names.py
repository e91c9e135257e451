"""What may be the name of an agent, and what is made from it."""

from __future__ import annotations

import pytest

from pallas_contract import names


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("a" * names.MAX_NAME, True),
        ("a" * (names.MAX_NAME + 1), False),
        ("a", True),
        ("tech_research-2", True),
        ("", False),
        ("2a", False),
        ("a_", False),
        ("Harper", False),
        ("a.b", False),
    ],
)
def test_a_name_becomes_a_dns_label(name: str, good: bool) -> None:
    assert names.is_name(name) is good


def test_what_is_made_from_a_name() -> None:
    assert names.slug("tech_research") == "tech-research"
    assert names.title("tech_re-search") == "Tech Re Search"
    assert names.call_token("tech-re_search") == "PALLAS_CALL_TECH_RE_SEARCH_TOKEN"
    assert names.token_file("ui") == "access.ui"
    assert names.registration_secret("partners") == "registration-partners"
