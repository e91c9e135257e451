"""Who may reach the world: an agent by what its own code uses, and by nothing of its neighbours."""

from __future__ import annotations

import pytest

from pallas_gen import explain

FLEET = """\
name: x
access: {jwt: {issuer: https://id.example, audience: x, %s}}
agents:
  scout: {module: agents.scout, port: 8101, depends_on: [tools]}
  other: {card: other.md, port: 8102}
services:
  tools: {module: agents.model, port: 8103}
"""
SERVERS = """\
mcp:
  servers:
    weather: {url: 'https://weather.example:8443/v1/mcp?page=2'}
    atlas: {url: '${ATLAS:https://atlas.example}/mcp'}
    near: {url: 'http://localhost:9/mcp'}
    tools: {url: 'http://elsewhere.example/mcp'}
    local: {command: python}
"""
MODULE = "from fast_agent import FastAgent\nfast = FastAgent('x')\n"


def world(made) -> dict[str, str]:
    """Return why each agent may reach the world."""
    return {way.caller: way.why for way in explain.connections(made) if way.called == explain.WORLD}


@pytest.fixture
def reasons(plan, tmp_path):
    def read(decorator: str, card: str, *, model: str = "passthrough", jwks: str = "jwks_file: keys.json"):
        (tmp_path / "agents").mkdir(exist_ok=True)
        (tmp_path / "agents" / "scout.py").write_text(f"{MODULE}@{decorator}\nasync def scout(): ...\n")
        files = {
            "fastagent__config__yaml": f"default_model: {model}\n{SERVERS}",
            "other__md": f"---\n{card}\n---\nHi\n",
        }
        return world(plan(FLEET % jwks, **files))

    return read


@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ("[]", None),
        ("['local', 'near', 'tools']", None),
        ("['weather', 'tools']", "its server `weather` (https://weather.example:8443)"),
        ("['atlas']", "its server `atlas` (a URL known only when it starts)"),
    ],
)
def test_the_servers_of_its_own_module_and_no_others(reasons, servers: str, why: str | None) -> None:
    assert reasons(f"fast.agent(name='scout', servers={servers})", "type: agent") == ({"scout": why} if why else {})


def test_the_servers_of_its_own_card(reasons) -> None:
    told = reasons("fast.agent(name='scout')", "servers: [weather]\nmcp_connect: [{target: https://more.example/mcp}]")
    assert told == {"other": "its server `weather` (https://weather.example:8443); its card names https://more.example"}


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://bob:hunter2secret@out.example:8443/mcp?key=more", "https://out.example:8443"),
        ("https://bob:one@two@out.example/", "https://out.example"),
        ("https://bob:hunter2/secret@out.example/", "https://bob"),
        ("${SOME_URL}", "a URL known only when it starts"),
        ("https://${HOST}/mcp", "a URL known only when it starts"),
    ],
)
def test_of_a_url_the_origin_alone_is_told(reasons, url: str, origin: str) -> None:
    assert reasons("fast.agent(name='scout')", f"mcp_connect: [{{target: '{url}'}}]") == {
        "other": f"its card names {origin}"
    }


def test_of_a_server_the_origin_alone_is_told(plan) -> None:
    secrets = "mcp: {servers: {paid: {url: 'https://bob:hunter2secret@out.example/mcp'}}}\n"
    files = {"fastagent__secrets__yaml": secrets, "other__md": "---\nmodel: silent\nservers: [paid]\n---\n"}
    made = plan(FLEET % "jwks_file: k", fastagent__config__yaml="default_model: silent\n", **files)
    assert world(made)["other"] == "its server `paid` (https://out.example)"
    assert "hunter2" not in explain.explain(made)


@pytest.mark.parametrize("url", ["http://scout:8080/mcp", "http://localhost:9/mcp", "http://127.0.0.1:9/mcp"])
def test_a_card_that_names_what_is_near_opens_no_way_out(reasons, url: str) -> None:
    assert reasons("fast.agent(name='scout')", f"mcp_connect: [{{target: '{url}'}}]") == {}


def test_servers_that_only_running_it_would_tell(reasons) -> None:
    assert reasons("fast.agent(name='scout', servers=SERVERS)", "servers: []") == {
        "scout": "all servers of the configuration count, because agents/scout.py:3:35: `servers` is no list of "
        "literal names; its server `atlas` (a URL known only when it starts); "
        "its server `weather` (https://weather.example:8443)"
    }


def test_a_module_that_defines_no_agent(plan) -> None:
    files = {"fastagent__config__yaml": SERVERS, "other__md": "---\ntype: agent\nmodel: passthrough\n---\n"}
    assert world(plan(FLEET % "jwks_file: k", **files))["scout"].startswith(
        "all servers of the configuration count, because its module defines no agent where that can be read; "
    )


def test_a_module_in_an_image_of_ones_own(plan, tmp_path) -> None:
    text = "image: {agent: mine:1}\n" + (FLEET % "jwks_file: k").replace("agents.scout", "installed.scout")
    made = plan(text, fastagent__config__yaml=SERVERS, other__md="---\ntype: agent\nmodel: passthrough\n---\n")
    assert "because installed.scout is not in the project folder; " in world(made)["scout"]


@pytest.mark.parametrize(
    ("default", "own", "why"),
    [
        ("passthrough", "", None),
        ("openai.m", "", "its model openai.m"),
        ("passthrough", "model='anthropic.m'", "its model anthropic.m"),
        ("openai.m", "model='passthrough'", None),
        ("passthrough", "model=MODEL", "its model (known only when it starts)"),
    ],
)
def test_its_own_model_or_the_default_one(reasons, default: str, own: str, why: str | None) -> None:
    told = reasons(f"fast.agent(name='scout', {own})", "model: passthrough", model=default)
    assert told == ({"scout": why} if why else {})


def test_agents_that_only_hand_on_have_no_model(reasons) -> None:
    told = reasons("fast.chain(name='scout', sequence=['a'])", "model: passthrough", model="openai.m")
    assert told == {}


def test_the_keys_of_its_callers_tokens(reasons) -> None:
    told = reasons("fast.agent(name='scout')", "type: agent", jwks="jwks_url: https://id.example/keys?v=1")
    assert told == dict.fromkeys(("scout", "other"), "the keys of its callers' tokens (https://id.example)")


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("openai.m", None),
        ("gpt-4.1", None),
        ("$system.fast", None),
        ("anthropic.m", "its model anthropic.m"),
        ("sonnet", "its model sonnet"),
        ("gpt-oss", "its model gpt-oss"),
    ],
)
def test_a_model_beside_the_fleet_stands_in_for_openai_only(reasons, plan, model: str, why: str | None) -> None:
    text = (FLEET % "jwks_file: k").replace("port: 8103}", "port: 8103, provides: openai}")
    made = plan(text, fastagent__config__yaml=f"default_model: {model}\n", other__md="---\nmodel: silent\n---\n")
    assert world(made) == ({"scout": why} if why else {})
