"""Keys by habit: where each belongs. Whole messages are in tests/generator/test_mistakes.py."""

from __future__ import annotations

import pytest

from pallas_contract.fleet.model import Agent, Fleet, Registry, Service
from pallas_contract.validate import habits


def test_no_hint_is_about_a_key_that_there_is() -> None:
    for keys, model in (
        (habits._TOP, Fleet),
        (habits._AGENT, Agent),
        (habits._REGISTRY, Registry),
        (habits._SERVICE, Service),
    ):
        assert set(keys) & set(model.model_fields) == set()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("agents", "a", "model"), "default_model"),
        (("defaults", "model"), "default_model"),
        (("services", "a", "environment"), "env:"),
        (("registry", "port"), "registry_port"),
        (("secrets",), "defaults"),
        (("agents", "a", "access", "model"), ""),
        (("agents", "a", "other"), ""),
        (("networks", "port"), ""),
    ],
)
def test_a_key_at_its_place(path, text: str) -> None:
    hint = habits.unknown(path)
    assert text in hint
    assert bool(text) == bool(hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("agents/a.py", "write `agents.a`"),
        ("./agents\\a", "write `agents.a`"),
        ("a-b", ""),
        (5, ""),
        ("a.py", "write `a`"),
    ],
)
def test_a_module_by_its_path(value, hint: str) -> None:
    assert habits.path_of(("agents", "a", "module"), value) == hint
