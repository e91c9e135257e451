"""A provider recorded through the official clients, and replayed: no secret in the file, differences told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from pallas_testing.model import ScriptedModel, serving
from pallas_testing.model.cassette.recording import Recorder, target
from pallas_testing.model.serving import serving_backend
from tests.testing.model.conftest import PNG, SCHEMA, Client

KEYS = ("planted-header-key-1", "planted-query-key-2", "sk-planted-body-3", "planted-env-key-4")


@contextmanager
def recording(base_url: str, path: Path, reports: list[str] | None = None) -> Iterator[str]:
    recorder = Recorder(base_url, path, (reports if reports is not None else []).append)
    with serving_backend(recorder) as url:
        yield url


async def conversation(client: Client) -> list[Any]:
    """Ask for all there is: a text, calls, what came of them, a form, an image."""
    return [
        await client.ask("hello"),
        await client.ask("look around"),
        await client.ask("look around", result="a tree"),
        await client.ask("a form", schema=SCHEMA),
        await client.ask("what is it", image=PNG),
    ]


@pytest.fixture
def provider(scripted_model: ScriptedModel) -> ScriptedModel:
    scripted_model.rule(user="hello", say="Good morning.\n\nHow are you?")
    scripted_model.rule(user="around", results=False, say="Hm.", call=[{"tool": "look"}, {"tool": "listen"}])
    scripted_model.rule(user="around", say="There is {results}.")
    scripted_model.rule(user="form", json={"size": 3})
    scripted_model.rule(images=1, say="a dot")
    return scripted_model


async def test_a_replay_says_what_the_provider_said(
    provider: ScriptedModel, client: Client, clients: type[Client], tmp_path: Path
) -> None:
    with recording(f"{provider.url}/v1", tmp_path / "c.yaml") as client.url:
        answers = await conversation(client)
    with serving(ScriptedModel(tmp_path / "c.yaml")) as model:
        assert await conversation(clients(client.api, client.stream, model.url, key="x")) == answers
        assert await conversation(clients(client.api, not client.stream, model.url, key="x")) == answers
    assert model.problems() == []
    assert model.models == ["scripted"]


async def test_a_recording_of_one_api_answers_another(
    provider: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    with recording(provider.url, tmp_path / "c.yaml") as url:
        answers = await conversation(clients("chat", True, url))
    with serving(ScriptedModel(tmp_path / "c.yaml")) as model:
        for api in ("responses", "messages"):
            replayed = await conversation(clients(api, False, model.url))
            assert [(a.text, a.calls) for a in replayed] == [(a.text, a.calls) for a in answers]


async def test_the_file_is_readable_and_the_same_each_time(
    provider: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    texts = []
    for name in ("a.yaml", "b.yaml"):
        with recording(provider.url, tmp_path / name) as url:
            await conversation(clients("messages", True, url))
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    data = yaml.safe_load(texts[0])
    assert list(data["agents"]) == ["you-are-harper", "you-are-harper-2"]  # the second has to fill in a form
    assert "    say: |-\n      Good morning.\n\n      How are you?\n" in texts[0]
    assert data["exchanges"][1]["reply"] == {"say": "Hm.", "call": [{"tool": "look"}, {"tool": "listen"}]}
    assert data["exchanges"][4]["messages"][0]["images"] == ["image/png of 70 bytes, sha256 " + _digest(PNG)]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


async def test_no_planted_key_is_in_the_file(
    scripted_model: ScriptedModel, api: str, clients: type[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = clients(api, True, scripted_model.url)
    monkeypatch.setenv("SOME_TOKEN", KEYS[3])
    reports: list[str] = []
    scripted_model.rule(user="fail", error={"status": 401, "message": f"Incorrect API key provided: {KEYS[0]}"})
    scripted_model.rule(say=f"You sent {KEYS[2]} and {KEYS[3]}, see https://u:{KEYS[1]}@host/?key={KEYS[1]}")
    client.key = KEYS[0]
    base = scripted_model.url.replace("http://", f"http://me:{KEYS[1]}@")
    with recording(base, tmp_path / "c.yaml", reports) as client.url:
        await client.ask(f"my key is {KEYS[2]}", instruction=f"Use {KEYS[0]}", result=f"env: {KEYS[3]}")
        with pytest.raises(Exception, match="Incorrect API key"):
            await client.ask("fail")
    text = (tmp_path / "c.yaml").read_text()
    assert [key for key in KEYS if key in text + "".join(reports)] == []
    assert text.count("<secret>") >= 8
    assert "401" in text


async def test_a_replayed_error_is_the_recorded_one(
    scripted_model: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    client = clients("messages", True, scripted_model.url)
    scripted_model.rule(error={"status": 429, "message": "slow down", "retry_after": 3}, times=1)
    scripted_model.rule(say="well")
    with recording(scripted_model.url, tmp_path / "c.yaml") as client.url:
        with pytest.raises(Exception, match="slow down"):
            await client.ask()
        assert (await client.ask()).text == "well"
    with serving(ScriptedModel(tmp_path / "c.yaml")) as model:
        client.url = model.url
        with pytest.raises(Exception, match="slow down") as raised:
            await client.ask()
        assert raised.value.response.headers["retry-after"] == "3"  # type: ignore[attr-defined]
        assert [(await client.ask()).text for _ in range(2)] == ["well", "well"]


async def test_meaning_counts_and_bytes_do_not(
    scripted_model: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    scripted_model.rule(say="fine")
    before = "You are Harper.  Today is 2026-01-02T10:00:00Z, 3 May 2026.\nAsk http://127.0.0.1:9001/mcp."
    after = "You are Harper. Today is 2027-03-04T11:00:00Z,\n14 June 2027. Ask http://127.0.0.1:41999/mcp."
    with recording(scripted_model.url, tmp_path / "c.yaml") as url:
        await clients("chat", True, url).ask(instruction=before)
    with serving(ScriptedModel(tmp_path / "c.yaml")) as model:
        assert (await clients("chat", True, model.url).ask(instruction=after)).text == "fine"


async def test_a_changed_prompt_is_told_by_what_differs(
    provider: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    client = clients("responses", False, provider.url)
    with recording(provider.url, tmp_path / "c.yaml") as client.url:
        await client.ask("hello", instruction="You are Harper.\nBe kind.")
        await client.ask("look around", instruction="You are Harper.\nBe kind.")
    with serving(ScriptedModel(tmp_path / "c.yaml")) as model:
        client.url = model.url
        with pytest.raises(Exception, match="has no recording of this call"):
            await client.ask("look around", instruction="You are Harper.\nBe short.")
    (text,) = model.problems()
    assert "c.yaml has no recording of this call:\n  model: scripted" in text
    assert text.endswith(
        "  it differs from exchanges.1, the nearest, in\n    instruction:\n        You are Harper.\n"
        "      - Be kind.\n      + Be short.\n  record it again with --record if the change is meant"
    )


async def test_what_cannot_be_recorded_is_told_and_left_out(
    scripted_model: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    reports: list[str] = []
    scripted_model.rule(user="cut", say="one two three", cut_after=1)
    scripted_model.rule(say="whole")
    with recording(scripted_model.url, tmp_path / "c.yaml", reports) as url:
        with pytest.raises(Exception, match=r"(?i)incomplete|peer closed|connection"):
            await clients("chat", True, url).ask("cut")
        assert (await clients("chat", True, url).ask("whole")).text == "whole"
    assert [report.partition(": ")[0] for report in reports] == ["not recorded"]
    assert len(yaml.safe_load((tmp_path / "c.yaml").read_text())["exchanges"]) == 1


async def test_a_cassette_that_cannot_be_written_is_told(
    scripted_model: ScriptedModel, clients: type[Client], tmp_path: Path
) -> None:
    reports: list[str] = []
    (tmp_path / "c.yaml.part").mkdir()
    scripted_model.rule(say="whole")
    with recording(scripted_model.url, tmp_path / "c.yaml", reports) as url:
        assert (await clients("chat", True, url).ask("whole")).text == "whole"
    assert reports == [f"not recorded: {tmp_path}/c.yaml.part: is a directory"]


async def test_a_provider_that_is_not_there(tmp_path: Path, clients: type[Client]) -> None:
    reports: list[str] = []
    with (
        recording("http://127.0.0.1:9/v1", tmp_path / "c.yaml", reports) as url,
        pytest.raises(Exception, match="the provider does not answer: ConnectError"),
    ):
        await clients("chat", False, url).ask()
    assert len(reports) == 1
    assert not (tmp_path / "c.yaml").exists()


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://h", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1/", "/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1", "/v1/messages", "https://h/v1/messages"),
        ("https://h/openai", "/v1/responses", "https://h/openai/responses"),
        ("https://h/anthropic", "/v1/messages", "https://h/anthropic/v1/messages"),
    ],
)
def test_base_urls_are_written_as_for_the_clients(base: str, path: str, url: str) -> None:
    assert target(base, path) == url
    assert target(base, path, "beta=true") == f"{url}?beta=true"
