"""A running agent whose model provider is down, hangs or does not know the model: it starts, says so, and notices the
end of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mcp import Client

pytestmark = [pytest.mark.slow, pytest.mark.waits]

ERAS = ["2026-07-28", "legacy"]
MODELS = {"openai": "openai.m", "anthropic": "anthropic.claude-none"}


@contextmanager
def agent(toolkit: Any, folder: Any, active: str, urls: dict[str, str], **files: str) -> Iterator[Any]:
    """`scout` on the model of `active`; it has the keys of all providers in `urls`. `files` replace others by name."""
    keys = "".join(f"{name.upper()}_API_KEY=sk-{name}\n{name.upper()}_BASE_URL={url}\n" for name, url in urls.items())
    project = {
        "agents.yaml": {
            "name": "p",
            "registry_port": toolkit.free_port(),
            "agents": {"scout": {"card": "scout.md", "port": toolkit.free_port()}},
        },
        "scout.md": "---\ntype: agent\nname: scout\n---\nYou are Scout.\n",
        "fastagent.config.yaml": {"default_model": MODELS[active]},
        ".env": keys,
        **files,
    }
    with toolkit.running(toolkit.write_files(folder, project), "scout") as agents:
        yield agents


def checked(toolkit: Any, agents: Any, *names: str) -> dict[str, Any]:
    """What `/healthz` says once all these providers were asked."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = json.loads(agents.get("scout", "/healthz")[1])
        return found if found["llm"].keys() >= set(names) else None

    found: dict[str, Any] = toolkit.until(look)
    return found


async def said(agents: Any, era: str) -> dict[str, str]:
    async with Client(agents.url("scout"), mode=era) as client:
        result = await client.call_tool("get_health", {})
    assert not result.is_error
    found: dict[str, str] = json.loads(result.content[0].text)
    return found


@pytest.mark.parametrize("name", MODELS)
async def test_a_provider_that_was_down_at_the_start_is_noticed(
    toolkit: Any, parts: Any, tmp_path: Any, name: str
) -> None:
    port, provider = toolkit.free_port(), parts.Provider(models=("m", "claude-none"))
    url = f"http://127.0.0.1:{port}" + ("/v1" if name == "openai" else "")
    with agent(toolkit, tmp_path, name, {name: url}) as agents:
        page = await asyncio.to_thread(checked, toolkit, agents, name)
        wanted = ("degraded", f"LLM: {name}: connection refused (127.0.0.1:{port})")
        assert (page["status"], page["message"]) == wanted
        for era in ERAS:
            answer = await said(agents, era)
            assert (answer["status"], answer["message"]) == wanted
        assert f'pallas_llm_preflight_ok{{provider="{name}"}} 0.0' in agents.get("scout", "/metrics")[1].splitlines()
        with parts.providing(provider, port):
            well = lambda: json.loads(agents.get("scout", "/healthz")[1])["status"] == "ok" or None  # noqa: E731
            await asyncio.to_thread(toolkit.until, well)
            assert [sorted(await said(agents, era)) for era in ERAS] == [["status", "timestamp"]] * 2
        assert f'pallas_llm_preflight_ok{{provider="{name}"}} 1.0' in agents.get("scout", "/metrics")[1].splitlines()
        assert provider.posted == 0
        lines = [json.loads(line) for line in agents.log("scout").read_text().splitlines()]
        assert [line["reason"] for line in lines if line["event"] == "preflight"] == [
            f"connection refused (127.0.0.1:{port})",
            "ok",
        ]


async def test_only_the_active_provider_degrades_and_a_hang_ends_after_five_seconds(
    toolkit: Any, parts: Any, tmp_path: Any
) -> None:
    hanging, other = parts.Provider(mood="hang"), parts.Provider(models=())
    with (
        parts.providing(hanging) as slow,
        parts.providing(other) as url,
        agent(toolkit, tmp_path, "openai", {"openai": f"{slow}/v1", "anthropic": url}) as agents,
    ):
        page = await asyncio.to_thread(checked, toolkit, agents, "openai", "anthropic")
    assert (page["status"], page["message"]) == ("degraded", "LLM: openai: no answer in 5 s")
    assert page["llm"]["anthropic"]["reason"] == "model 'claude-sonnet-4-5' not found"


async def test_what_a_provider_says_never_ends_the_agent(toolkit: Any, parts: Any, tmp_path: Any) -> None:
    provider = parts.Provider(mood="deep")
    with (
        parts.providing(provider) as url,
        agent(toolkit, tmp_path, "openai", {"openai": f"{url}/v1"}) as agents,
    ):
        page = await asyncio.to_thread(checked, toolkit, agents, "openai")
        assert page["message"] == "LLM: openai: gave no valid answer"
        provider.models, provider.mood = ("x",), ""
        gone = lambda: (  # noqa: E731
            json.loads(agents.get("scout", "/healthz")[1]).get("message") == "LLM: openai: model 'm' not found" or None
        )
        await asyncio.to_thread(toolkit.until, gone)


@pytest.mark.parametrize(
    ("model", "address", "message"),
    [
        ("openai.m", "https://api.openai.com/v1", "LLM: openai: no API key"),
        ("openai.m", "", ""),
        ("gpt-4.1", "", "LLM: openai: model 'gpt-4.1' not found"),
    ],
)
async def test_an_unset_key_stops_no_agent(
    toolkit: Any, parts: Any, tmp_path: Any, model: str, address: str, message: str
) -> None:
    """The secrets file is the seed's own; a model on the same host needs no key."""
    with parts.providing(parts.Provider()) as url:
        files = {
            "fastagent.config.yaml": f"default_model: {model}\n",
            "fastagent.secrets.yaml": 'openai: {api_key: "${OPENAI_API_KEY}"}\n',
            ".env": f"OPENAI_BASE_URL={address or url + '/v1'}\n",
        }
        with agent(toolkit, tmp_path, "openai", {}, **files) as agents:
            page = await asyncio.to_thread(checked, toolkit, agents, "openai")
            assert page.get("message", "") == message
            assert "openai.api_key: the variable OPENAI_API_KEY is not set" in agents.log("scout").read_text()


@pytest.mark.parametrize("card", ["", "model: gpt-oss"], ids=["by default", "in the card"])
async def test_an_unset_key_of_a_provider_that_nobody_asks_stops_no_agent_either(
    toolkit: Any, tmp_path: Any, card: str
) -> None:
    """Hugging Face's is read by fast-agent alone."""
    files = {
        "fastagent.config.yaml": "default_model: passthrough\n" if card else "default_model: gpt-oss\n",
        "scout.md": f"---\ntype: agent\nname: scout\n{card}\n---\nYou are Scout.\n",
        ".env": f"HF_HOME={tmp_path}\n",
    }
    with agent(toolkit, tmp_path, "openai", {}, **files) as agents:
        page = json.loads(agents.get("scout", "/healthz")[1])
    assert (page["status"], page["message"]) == ("degraded", "LLM: hf: no API key")
