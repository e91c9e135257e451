"""The model that a caller wants, and the one that it is told of."""

from __future__ import annotations

from typing import Any

import pytest

from pallas_agent_runtime.calls import models
from pallas_agent_runtime.calls.models import KEY, OtherModel


@pytest.mark.parametrize(
    "meta",
    [None, {}, {KEY: ""}, {KEY: "gpt-4.1"}, {KEY: "openai.gpt-4.1"}],
    ids=["none", "no key", "any", "bare", "full"],
)
def test_its_own_model_is_no_other(meta: dict[str, Any] | None) -> None:
    models.check(meta, "gpt-4.1", "openai")


@pytest.mark.parametrize("wanted", ["claude-opus-4", "4.1", "azure.gpt-4.1", ".gpt-4.1", 1, ["gpt-4.1"], "x" * 1000])
def test_another_model_is_refused_with_the_name_of_its_own(wanted: Any) -> None:
    with pytest.raises(OtherModel, match=r"^model: this agent runs on openai\.gpt-4\.1, not on .{1,80}$"):
        models.check({KEY: wanted}, "gpt-4.1", "openai")
    with pytest.raises(OtherModel, match="runs on no model"):
        models.check({KEY: wanted}, "", "")


def test_who_does_not_ask_is_told_nothing() -> None:
    assert models.answered({KEY: ""}, "gpt-4.1") == {KEY: "gpt-4.1"}
    assert models.answered({}, "gpt-4.1") is None
    assert models.answered({KEY: ""}, "") is None
