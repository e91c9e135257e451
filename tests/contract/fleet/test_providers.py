"""The table of model providers; what is made of each row is walked in tests/agent_runtime/health/test_providers.py."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import fastagent, providers


def test_no_prefix_stands_twice() -> None:
    prefixes = [prefix for row in providers.PROVIDERS for prefix in row.prefixes]
    assert len(prefixes) == len(set(prefixes))
    assert all(providers.find(prefix) for prefix in prefixes)
    assert providers.find("nobody") is None


@pytest.mark.parametrize("row", providers.CHECKED, ids=lambda row: row.name)
def test_a_provider_that_is_checked_has_all_that_a_check_needs(row: providers.ModelProvider) -> None:
    assert row.key_variable
    assert row.url_variable
    assert not fastagent.flaw(row.default_url)
    assert not row.default_url.endswith("/")


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("openai.org/m.v1", ("openai", "org/m.v1")),
        ("openai/m", ("openai", "m")),
        ("hf.m", ("hf", "m")),
        ("passthrough", ("passthrough", "")),
        ("gpt-4.1", ("", "gpt-4.1")),
        ("org/m", ("", "org/m")),
        ("openai/", ("", "openai/")),
        ("", ("", "")),
    ],
)
def test_a_prefix_is_one_that_fast_agent_knows(model: str, parts: tuple[str, str]) -> None:
    assert providers.split(model) == parts
