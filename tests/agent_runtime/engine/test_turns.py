"""Which images a turn refuses before a model drops them; whole turns are in tests/agent_runtime/pair."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pallas_agent_runtime.calls.arguments import Image, Question
from pallas_agent_runtime.engine import turns

QUESTION = Question("what is this?", (Image("aGk=", "image/png"),))


def agent(*mime_types: str, model: str = "") -> Any:
    """An agent of fast-agent's as far as its model is looked at; without `model` it has none."""
    info = SimpleNamespace(supports_mime=lambda mime_type: mime_type in mime_types)
    return SimpleNamespace(llm=SimpleNamespace(model_name=model, model_info=info) if model else None)


def test_of_a_workflow_the_agents_with_a_model_are_asked() -> None:
    router = agent()
    blind, seeing = agent(model="blind"), agent("image/png", model="seeing")
    assert turns._unseen(router, {"router": router, "a": blind, "b": seeing}, QUESTION) == ""
    said = "images: the model blind does not accept image/png"
    assert turns._unseen(router, {"router": router, "a": blind, "loop": agent()}, QUESTION) == said


def test_a_workflow_without_any_model_is_refused_too() -> None:
    router = agent()
    said = "images: the model of this agent does not accept image/png"
    assert turns._unseen(router, {"router": router}, QUESTION) == said
