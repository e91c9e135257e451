"""What the page shows is what the package takes: its script is followed, its test passes, its service listens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import pallas_testing.model
from pallas_testing.model import Rule, Script, ScriptedModel
from tests.documentation import blocks

PAGE = (Path(__file__).parents[3] / "docs" / "scripted-model.md").read_text()
FILES = blocks.files("scripted-model")
TOOLS = [{"type": "function", "function": {"name": "weather__forecast"}}]


def ask(agent: str, message: str, env: dict[str, str]) -> str:
    """An agent in a few lines: it asks the model until that calls no tool any more, and it is always sunny."""
    messages: list[Any] = [{"role": "system", "content": f"You are {agent.title()}"}]
    messages.append({"role": "user", "content": message})
    with httpx.Client(base_url=env["OPENAI_BASE_URL"], verify=False, timeout=60) as http:
        while True:
            asked = http.post("/chat/completions", json={"model": "m", "messages": messages, "tools": TOOLS})
            answer = asked.raise_for_status().json()["choices"][0]["message"]
            if "tool_calls" not in answer:
                return str(answer["content"])
            messages.append(answer)
            messages += [{"role": "tool", "tool_call_id": c["id"], "content": "sunny"} for c in answer["tool_calls"]]


def test_the_test_of_the_page_passes(scripted_model: ScriptedModel, tmp_path: Path) -> None:
    names: dict[str, Any] = {"ask": ask}
    exec(FILES["test_harper.py"], names)
    names["test_harper"](scripted_model)
    (tmp_path / "script.yaml").write_text(FILES["script.yaml"])
    scripted_model.load(tmp_path / "script.yaml")
    names["test_from_a_file"](scripted_model)
    (marker,) = names["test_from_a_file"].pytestmark
    assert (marker.name, marker.args) == ("scripted_model", ("script.yaml",))


def test_the_service_of_the_page_listens_where_it_is_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr(pallas_testing.model, "serve", lambda *arguments: served.extend(arguments))
    monkeypatch.setenv("PALLAS_BIND", "0.0.0.0:8080")
    with pytest.raises(SystemExit) as ended:
        exec(FILES["standins/model.py"], {"__file__": str(tmp_path / "model.py")})
    assert (ended.value.code, served) == (None, [tmp_path / "model.yaml", "0.0.0.0:8080"])


def test_the_page_names_every_key_of_a_rule() -> None:
    keys = {field.alias or name for name, field in Rule.model_fields.items()}
    assert keys - set(re.findall(r"`([a-z_]+)[:`]", PAGE)) == set()
    assert set(Script.model_fields) - set(re.findall(r"[`\n]([a-z_]+)[:`]", PAGE)) == set()
