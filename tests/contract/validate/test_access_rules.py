"""`access`: what follows for each agent, and the calls that could not work."""

from __future__ import annotations

import pytest

from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import credentials, secret_files
from pallas_contract.validate import graph_rules, load

FLEET = """\
name: x
host: agents.example
access: {tokens: {ui: {file: s/ui}}, jwt: {issuer: https://id.example, jwks_file: keys.json}}
agents:
  harper: {module: m.harper, port: 8101, depends_on: [research, open]}
  research: {module: m.research, port: 8102, access: {tokens: {harper: {file: s/harper}}}}
  open: {module: m.open, port: 8103, access: {anonymous: true}}
"""


def parse(text: str) -> ResolvedFleet:
    return load.parse(source.parse(text, name="agents.yaml"))


def problems(text: str) -> list[str]:
    tree = source.parse(text, name="agents.yaml")
    return [f"{found.where.field}: {found.message}" for found in graph_rules.problems(load.parse(tree), tree)]


def test_callers_of_the_fleet_and_of_the_agent_add_up() -> None:
    fleet = parse(FLEET)
    assert sorted(fleet.agents["research"].access.tokens) == ["harper", "ui"]
    assert sorted(fleet.agents["harper"].access.tokens) == ["ui"]
    assert [credentials.protected(fleet, name) for name in fleet.agents] == [True, True, False]
    assert not problems(FLEET)


def test_a_token_under_an_agents_name_is_what_it_presents() -> None:
    fleet = parse(FLEET)
    secrets = {name: secret_files.of_agent(fleet, name) for name in fleet.agents}
    files = {name: {secret.target: secret.file for secret in secrets[name]} for name in fleet.agents}
    assert files["harper"] == {
        "access.ui": "s/ui",
        "access.jwks.json": "keys.json",
        "PALLAS_CALL_RESEARCH_TOKEN": "s/harper",
    }
    assert sorted(files["research"]) == ["access.harper", "access.jwks.json", "access.ui"]
    assert files["open"] == {}
    assert {secret.target: ".".join(secret.path) for secret in secrets["harper"]} == {
        "access.ui": "access.tokens.ui.file",
        "access.jwks.json": "access.jwt.jwks_file",
        "PALLAS_CALL_RESEARCH_TOKEN": "agents.research.access.tokens.harper.file",
    }


def test_a_static_token_is_never_forwarded_to_a_server_outside() -> None:
    text = FLEET.replace("open]", "open], access: {forward: [argos, research]}").replace("s/harper", "s/ui")
    assert [line for line in problems(text) if "never shown" in line] == [
        "agents.harper.access.forward.0: the token of ui is never shown to `argos`: a static token is for agents only"
    ]
    assert not [line for line in problems(text.replace("tokens: {ui: {file: s/ui}}, ", "")) if "never shown" in line]


def test_who_gets_the_callers_token_gets_no_other() -> None:
    assert credentials.presented(parse(FLEET.replace("open]", "open], access: {forward: [research]}")), "harper") == {}


@pytest.mark.parametrize(
    ("edit", "placement", "audience"),
    [
        ("", "container", "http://agents.example:8102/mcp"),
        (", publish: false", "container", "http://research:8080/mcp"),
        (", publish: false", "local", "http://127.0.0.1:8102/mcp"),
    ],
)
def test_a_token_is_for_the_url_an_agent_is_known_by(edit: str, placement: str, audience: str) -> None:
    fleet = parse(FLEET.replace("port: 8102", f"port: 8102{edit}"))
    assert credentials.audience(fleet, "research", placement) == audience
    fixed = parse(FLEET.replace("keys.json", "keys.json, audience: fleet"))
    assert credentials.audience(fixed, "research", placement) == "fleet"


BROKEN = {
    "no keys": (", jwks_file: keys.json", "", "access.jwt: needs `jwks_url` or `jwks_file`"),
    "two key sets": ("keys.json", "k, jwks_url: https://k", "access.jwt: has both `jwks_url` and `jwks_file`"),
    "one token twice": (
        "{ui: {file: s/ui}}",
        "{ui: {file: s}, b: {file: s}}",
        "access.tokens.ui: s is the token of several callers",
    ),
    "anonymous with tokens": (
        "anonymous: true",
        "anonymous: true, tokens: {b: {file: s/b}}",
        "agents.open.access.anonymous: lets everybody in",
    ),
    "nothing to forward": (
        "anonymous: true",
        "anonymous: true, forward: [x]",
        "agents.open.access.forward: there is no token to forward",
    ),
    "keys out of reach": (
        "jwks_file: keys.json}}\nagents:\n  harper: {",
        "jwks_url: https://k}}\nagents:\n  harper: {egress: false, ",
        "agents.harper.egress: without it the issuer's keys cannot be fetched",
    ),
    "a call that is refused": (
        ", access: {tokens: {harper: {file: s/harper}}}",
        "",
        "agents.harper.depends_on.0: `research` asks for a token, and `harper` has none",
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_work_is_told_where_it_stands(old: str, new: str, said: str) -> None:
    assert old in FLEET
    assert any(line.startswith(said) for line in problems(FLEET.replace(old, new)))


JWT = "{issuer: https://id.example, jwks_file: keys.json%s}"
ALONE = "{name: x%s, access: {jwt: %s}, agents: {a: {module: m.a, port: 8101%s}, b: {module: m.b, port: 8102}}}"


@pytest.mark.parametrize(
    ("fleet", "agent", "url"),
    [
        ("", "", "http://localhost:8101/mcp"),
        (", host: LOCALHOST", "", "http://LOCALHOST:8101/mcp"),
        (", host: 127.0.0.2", "", "http://127.0.0.2:8101/mcp"),
        (", host: 0.0.0.0", "", "http://0.0.0.0:8101/mcp"),
        (", host: agents.localhost", "", "http://agents.localhost:8101/mcp"),
        (", host: '127.1'", "", "http://127.1:8101/mcp"),
        (", host: '0x7f000001'", "", "http://0x7f000001:8101/mcp"),
        (", host: 169.254.1.1", "", "http://169.254.1.1:8101/mcp"),
        (", host: ip6-localhost", "", "http://ip6-localhost:8101/mcp"),
        (", host: host.docker.internal", "", "http://host.docker.internal:8101/mcp"),
        (", host: agents.example", ", publish: false", "http://a:8080/mcp"),
        (", host: agents.example", ", replicas: 2, instance_scope: request", "http://a:8080/mcp"),
        (", public_url: 'https://{name}.example'", ", publish: false", "http://a:8080/mcp"),
        (", public_url: 'https://{name}.localhost'", "", "https://a.localhost/mcp"),
    ],
)
def test_a_token_that_every_fleet_would_take_is_none(fleet: str, agent: str, url: str) -> None:
    """Once for the section that has no audience, and nothing where it has one."""
    (said,) = problems(ALONE % (fleet, JWT % "", agent))
    assert said == (f"access.jwt: without `audience` a token for `a` is for {url}, which is the same in every fleet")
    assert problems(ALONE % (fleet, JWT % ", audience: x", agent)) == []
    own = f"{agent}, access: {{jwt: {JWT % ''}}}"
    assert [line.split(":")[0] for line in problems(ALONE % (fleet, JWT % ", audience: x", own))] == [
        "agents.a.access.jwt"
    ]


@pytest.mark.parametrize(
    ("fleet", "agent"),
    [
        (", host: agents.example", ""),
        (", host: 192.168.1.5", ""),
        (", public_url: 'https://{name}.example'", ", replicas: 2, instance_scope: request"),
        (", public_url: 'https://x.example/{name}'", ""),
    ],
)
def test_a_fleet_with_an_address_needs_no_audience(fleet: str, agent: str) -> None:
    assert problems(ALONE % (fleet, JWT % "", agent)) == []


@pytest.mark.parametrize(
    ("fleet", "agent", "hint"),
    [
        (", host: agents.example", ", publish: false", "publish the agent"),
        (", public_url: 'http://localhost/{name}'", ", publish: true", "set `public_url`, or `host`"),
        ("", ", publish: false", "set `public_url`, or `host`"),
    ],
)
def test_what_to_do_about_it_is_what_is_missing(fleet: str, agent: str, hint: str) -> None:
    tree = source.parse(ALONE % (fleet, JWT % "", agent), name="agents.yaml")
    (found,) = graph_rules.problems(load.parse(tree), tree)
    assert found.hint.startswith(hint)


def test_nobody_is_asked_for_an_audience_who_asks_for_no_jwt() -> None:
    assert problems("{name: x, access: {tokens: {ui: {file: s}}}, agents: {a: {module: m.a, port: 8101}}}") == []


def test_a_section_that_lets_nobody_in_is_a_mistake() -> None:
    text = "{name: x, access: {}, agents: {a: {module: m.a, port: 8101}}}"
    assert problems(text) == ["access: has neither `tokens` nor `jwt`: nobody could be let in"]


def test_forwarding_needs_a_token_that_both_take() -> None:
    alone = FLEET.replace("access: {tokens: {ui: {file: s/ui}}, jwt: {issuer: https://id.example, jwks_file: k", "#")
    text = alone.replace("open]", "open], access: {tokens: {ui: {file: s/ui}}, forward: [research]}")
    assert problems(text) == ["agents.harper.access.forward: no token that `harper` takes is one that `research` takes"]
