"""`pallas-gen clients`: the file on stdout, what to do with it on stderr, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pallas_gen.clients.formats import CLIENTS
from pallas_gen.comparison import side

ONE = "name: x\nagents:\n  scout: {module: agents.scout, port: 8101%s}\n"
ASKING = ONE % ", access: {tokens: {ann: {file: keys/ann}}}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_client_they_are_listed(run) -> None:
    code, out, err = run("clients")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == list(CLIENTS)


def test_the_file_is_on_stdout_alone(make, run) -> None:
    make(ASKING)
    code, out, err = run("clients", "claude-code", "--variable", "MINE")
    assert code == 0
    assert json.loads(out)["mcpServers"]["scout"]["headers"] == {"Authorization": "Bearer ${MINE}"}
    assert err.splitlines() == [
        "Claude Code: put it into .mcp.json; the file is in the folder where you start it; `claude mcp list` shows "
        "the agents",
        "Claude Code: it reads MINE from the environment that it is started in",
    ]
    assert run("clients", "claude-code", "--variable", "MINE", "-q") == (0, out, "")
    assert "headers" not in run("clients", "claude-code", "--no-token")[1]


def test_a_running_registry_is_asked(run, monkeypatch) -> None:
    server = {"name": "local.x/guest", "title": "Guest", "remotes": [{"url": "http://b.example/mcp"}]}
    document = {"servers": [{"server": server, "_meta": {"io.pallas-kit/registration": {}}}]}
    monkeypatch.setattr(side, "document", lambda url: document)
    code, out, err = run("clients", "cursor", "--registry", "http://r.example", "--token")
    assert (code, json.loads(out)) == (0, {"mcpServers": {"guest": {"url": "http://b.example/mcp"}}})
    assert "registered by others, and so without the token: guest" in err
    monkeypatch.setattr(side, "document", lambda url: {"servers": [{}]})
    assert run("clients", "cursor", "--registry", "http://r.example")[::2] == (
        1,
        "what answers at http://r.example is no registry of pallas-kit\n",
    )


@pytest.mark.parametrize("url", ["http://b.example/${OPENAI_API_KEY}", "http://b.example/{input:x}", "http://$HOME"])
def test_a_url_that_a_client_would_put_keys_into_is_not_handed_on(url: str, run, monkeypatch) -> None:
    server = {"name": "local.x/guest", "title": "Guest", "remotes": [{"url": url}]}
    monkeypatch.setattr(side, "document", lambda _: {"servers": [{"server": server, "_meta": {}}]})
    code, out, err = run("clients", "claude-code", "--registry", "http://r.example")
    assert (code, out) == (1, "")
    assert "the URLs that the registry at http://r.example has of guest: the kit's registry takes none with" in err


def test_nobody_answers(run) -> None:
    code, out, err = run("clients", "cursor", "--registry", "http://127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err.startswith("no registry answers at http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (ONE % "", ("emacs",), "there is no client emacs: claude-code, "),
        (ONE % "", ("cursor", "--variable", "a b"), "'a b' is no name of a variable"),
        (ONE % "", ("cursor", "--registry", "r.example"), "'r.example' is no http(s) URL"),
        (ONE % "", ("cursor", "--registry", "ftp://ann:canary@r"), "'ftp://***@r' is no http(s) URL"),
        (ONE % "", ("cursor", "--registry", "http://ann:canary@r"), "http://***@r: is no http(s) URL without a user"),
        (ONE % ", publish: false", ("cursor",), "no agent has an address outside of the fleet: scout"),
        (ASKING, ("claude-desktop",), "--token-file: is needed: scout ask for a token"),
        (ASKING.replace("port", "prt"), ("cursor",), "agents.scout.prt: unknown key"),
    ],
)
def test_what_cannot_be_is_refused(text: str, words: tuple[str, ...], message: str, make, run) -> None:
    make(text)
    code, out, err = run("clients", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_agents_without_an_address_are_named(make, run) -> None:
    make(ONE % "" + "  other: {module: agents.other, port: 8102, publish: false}\n")
    code, out, err = run("clients", "claude-desktop", "--token", "--token-file", "no-such-file")
    assert (code, "other" in out) == (0, False)
    assert err.endswith("without an address outside of the fleet, and so left out: other\n")
    assert str(Path("no-such-file").absolute()) in json.loads(out)["mcpServers"]["scout"]["args"]
