"""The recipes of docs/models.md, run: a turn reaches the provider's address, in its language, with its key."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client
from typer.testing import CliRunner

from pallas_gen import cli
from pallas_gen.plan import build_plan
from pallas_gen.project import load
from pallas_testing.model import Reply
from pallas_testing.model.wire import APIS
from tests.documentation import blocks
from tests.ports import free_port

pytestmark = pytest.mark.slow

CARD = "---\ntype: agent\nname: hello\n---\nYou say hello to people.\n"
ANSWER = "The stand-in answers"
KEY = "key-of-the-test-" + secrets.token_hex(8)


@dataclass
class Provider:
    """A stand-in on this machine for the API of any provider: keeps the requests, and knows two models."""

    model: str
    address: str = ""
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    """Path, headers in lower case, and body of each; a GET has none."""

    @property
    def turns(self) -> list[tuple[str, str, str]]:
        """Path, key and model of each request for an answer."""
        return [(path, _key(headers), body["model"]) for path, headers, body in self.requests if body]

    @property
    def looks(self) -> set[tuple[str, str]]:
        """Path and key of what was asked before any turn, at the start of the agent."""
        return {(path, _key(headers)) for path, headers, body in self.requests if not body}


def _key(headers: dict[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def log_message(self, *_: object) -> None:
        pass

    def _note(self, body: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.provider.requests.append((self.path.partition("?")[0], headers, body))

    def do_GET(self) -> None:
        self._note({})
        self._send(
            "application/json", json.dumps({"data": [{"id": name} for name in (self.provider.model, OPENAI.model)]})
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._note(body)
        api = APIS[self.path.partition("?")[0]]
        events = api.events(api.read(body, ""), Reply(ANSWER))
        self._send("text/event-stream", "".join(event.encode().decode() for event in events))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def serving(model: str) -> Iterator[Provider]:
    provider = Provider(model)
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": provider})) as server:
        provider.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()


def _files(recipe: str) -> dict[str, str]:
    files = {name.partition("/"): text for name, text in blocks.files("models").items()}
    return {name: text for (head, _, name), text in files.items() if head == recipe}


@dataclass(frozen=True)
class Recipe:
    """A section of the page: how its model is asked, and why its agent may leave its network."""

    name: str
    model: str
    path: str
    way_out: tuple[str, ...]
    key: str = KEY
    look: str = "/v1/models"
    look_key: str = KEY
    """What the agent asks when it starts, and with which key."""

    def write(self, folder: Path, address: str) -> None:
        """Write its files; those that the page leaves to the reader or to another recipe are added."""
        files = {"agents/hello.md": CARD, **_files("openai"), **_files(self.name)}
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(re.sub(r"http://[a-z.]+:\d+/v1", f"{address}/v1", text).replace("24201", str(free_port())))
        with (folder / "agents.yaml").open("a") as file:
            file.write(f"registry_port: {free_port()}\n")
        for name in re.findall(r"secrets/\w+.txt", files["agents.yaml"]):
            (folder / "secrets").mkdir(exist_ok=True)
            (folder / name).write_text(KEY)


OPENAI = Recipe("openai", "gpt-4.1", "/v1/chat/completions", ("its model openai.gpt-4.1",))
CLAUDE = "claude-sonnet-4-5"
RECIPES = [
    OPENAI,
    Recipe("anthropic", CLAUDE, "/v1/messages", (f"its model anthropic.{CLAUDE}",), look=f"/v1/models/{CLAUDE}"),
    Recipe("ollama", "llama3.2", "/v1/chat/completions", (), key="not-set", look_key=""),
    Recipe("vllm", "qwen3", "/v1/chat/completions", ("its model openai.qwen3",)),
    Recipe("two", "llama3.2", "/v1/chat/completions", ("its model generic.llama3.2",), key="no-key-needed"),
]
OUTSIDE = ("openai", "anthropic", "two")
"""Recipes with the provider's own address, which a variable replaces here."""


async def call(toolkit: Any, folder: Path, **env: str) -> tuple[str, dict[str, Any]]:
    """Start the agent; return its answer and what `get_health` says."""
    with toolkit.running(folder, "hello", **env) as agents:
        async with Client(agents.url("hello")) as client:
            answer = await client.call_tool("hello", {"message": "Good morning"})
            health = await client.call_tool("get_health", {})
    return answer.content[0].text, json.loads(health.content[0].text)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
async def test_a_recipe_reaches_its_provider_with_its_key(recipe: Recipe, toolkit: Any, tmp_path: Path) -> None:
    with serving(recipe.model) as provider:
        recipe.write(tmp_path, provider.address)
        env = {"OPENAI_BASE_URL": f"{provider.address}/v1", "ANTHROPIC_BASE_URL": provider.address}
        answer, health = await call(toolkit, tmp_path, **(env if recipe.name in OUTSIDE else {}))
    assert (answer, health["status"]) == (ANSWER, "ok")
    assert provider.turns == [(recipe.path, recipe.key, recipe.model)]
    assert provider.looks == {(recipe.look, recipe.look_key)}


WAYS = {
    "environment": {},
    "fastagent.secrets.yaml": {"fastagent.secrets.yaml": f"openai: {{api_key: {KEY}}}\n"},
    ".env": {".env": f"OPENAI_API_KEY={KEY}\n"},
}
"""Rows of the table but the first, which is the recipe itself, and the files of each."""


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_arrives_from_wherever_the_table_says(way: str, toolkit: Any, tmp_path: Path) -> None:
    with serving(OPENAI.model) as provider:
        _without_secret(tmp_path, provider.address)
        for name, text in WAYS[way].items():
            (tmp_path / name).write_text(text)
        env = {"OPENAI_API_KEY": KEY} if way == "environment" else {}
        await call(toolkit, tmp_path, OPENAI_BASE_URL=f"{provider.address}/v1", **env)
    assert provider.turns == [(OPENAI.path, KEY, OPENAI.model)]


def test_a_container_and_a_pod_get_what_the_table_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    OPENAI.write(tmp_path, "http://models.example.com:8000")
    files = {name: text for way in WAYS.values() for name, text in way.items()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    installed = CliRunner().invoke(cli.app, ["helm"]).output
    options = re.findall(r"`(--set-file secrets[^`]+)`", (blocks.ROOT / "docs" / "models.md").read_text())
    assert len(options) == len(files) + 1
    assert [option for option in options if option not in installed] == []
    assert CliRunner().invoke(cli.app, ["compose"]).exit_code == 0
    services = yaml.safe_load((tmp_path / "compose.yaml").read_text())["services"]
    assert {secret["target"] for secret in services["hello"]["secrets"]} == {"OPENAI_API_KEY", *files}


def _without_secret(folder: Path, address: str) -> None:
    """Write the recipe of OpenAI without the key that its agents.yaml names."""
    OPENAI.write(folder, address)
    path = folder / "agents.yaml"
    text = path.read_text()
    path.write_text(re.sub(r"^defaults:\n(  .*\n)+", "", text, flags=re.MULTILINE))
    assert path.read_text() != text
    (folder / "secrets" / "OPENAI_API_KEY.txt").unlink()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_its_agent_leaves_its_network_only_for_a_model_outside(recipe: Recipe, tmp_path: Path) -> None:
    recipe.write(tmp_path, "http://models.example.com:8000")
    loaded = load.load(tmp_path / "agents.yaml", {})
    plan = build_plan(loaded.fleet, loaded.config, loaded.project)
    (agent,) = [workload for workload in plan.workloads if workload.kind == "agent"]
    assert agent.egress == recipe.way_out
