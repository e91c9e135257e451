"""The table of what fast-agent takes, as the rules read it."""

from __future__ import annotations

from pallas_contract.fleet import engine_table, providers


def test_cards_by_type_in_any_case() -> None:
    agent = engine_table.card_keys("agent")
    assert agent is not None
    assert {"servers", "model", "instruction"} <= set(agent["keys"])
    assert engine_table.card_keys(" maker ") == engine_table.card_keys("MAKER") != agent
    assert engine_table.card_keys("agnet") is None
    assert "router" in engine_table.card_kinds()


def test_models_have_providers_that_are_prefixes() -> None:
    models = engine_table.models()
    assert models["passthrough"] == "fast-agent"
    assert set(models.values()) <= providers.PREFIXES


def test_references_lead_to_a_definition() -> None:
    assert "servers" in engine_table.definition("#/$defs/MCPSettings")["properties"]
    assert engine_table.settings()["default_model"]
