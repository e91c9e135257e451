"""The rules over models against fast-agent itself: both know the same models and providers."""

from __future__ import annotations

import pytest
from fast_agent.core.exceptions import ModelConfigError
from fast_agent.llm.model_factory import ModelFactory

from pallas_contract.problems import Where
from pallas_contract.validate.code import models
from pallas_contract.validate.suggestions import Suggestions
from tests.problem_lines import without_codes

KNOWN = ("sonnet", "gpt-4o", "gpt-4.1?temperature=1", "openai.anything", "generic.llama3:latest", "openrouter/x/y")
KNOWN_TOO = ("hf.x/y:z", "passthrough", "gemini25", "claude-sonnet-4-5", "anthropic.new", "deepseek")
UNKNOWN = {
    "gpt4o": "fast-agent knows no model `gpt4o`\n    did you mean `gpt-4o`?",
    "opnai.gpt-4.1": "fast-agent knows no provider `opnai`\n    did you mean `openai`?",
    "ollama.llama3": "fast-agent knows no provider `ollama`\n    write `generic.llama3`, and `generic: {base_url: ",
    "ollama/llama3": "fast-agent knows no provider `ollama`\n    write `generic.llama3`",
    "zzzzzzzzzzz": "fast-agent knows no model `zzzzzzzzzzz`\n    one it does not know needs its provider",
    "gpt-4o.high": "fast-agent reads no effort behind a dot\n    write `gpt-4o?reasoning=high`",
    "openai.o3.low": "fast-agent reads no effort behind a dot\n    write `openai.o3?reasoning=low`",
}


def said(model: str) -> list[str]:
    return [without_codes(str(problem)) for problem in models.problems(model, Where("x"), Suggestions())]


@pytest.mark.parametrize("model", [*KNOWN, *KNOWN_TOO])
def test_both_take_it(model: str) -> None:
    assert ModelFactory.parse_model_spec(model)
    assert said(model) == []


@pytest.mark.parametrize("model", UNKNOWN)
def test_both_refuse_it(model: str) -> None:
    with pytest.raises(ModelConfigError):
        ModelFactory.parse_model_spec(model)
    (problem,) = said(model)
    assert problem.removeprefix("x: ").startswith(UNKNOWN[model])


@pytest.mark.parametrize("model", ["", "${MODEL}", "$system.fast", "openai.${NAME}"])
def test_what_is_known_only_at_the_start(model: str) -> None:
    assert said(model) == []


def test_a_provider_alone_is_no_model() -> None:
    assert said("openai.") == ["x: names the provider `openai` and no model\n    write `openai.MODEL`"]
