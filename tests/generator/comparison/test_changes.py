"""Each change has whom it concerns, and whether they have to do something."""

from __future__ import annotations

import pytest

from pallas_gen.comparison import changes, facts
from pallas_gen.comparison.facts import Facts
from tests.generator.comparison.test_facts import fleet

BASE = """\
name: x
version: "1.0.0"
agents:
  scout: {module: agents.scout, port: 8101, keep_conversations: true, secrets: {KEY: {file: keys/key}}}
  other: {card: other.md, port: 8102, env: {PASSWORD: canary, url: canary}, access: {tokens: {ann: {file: keys/ann}}}}
services: {tides: {module: tides, port: 8111, args: [--one, canary]}}
registry: {registration: {reach: [a.example], tokens: {out: {file: keys/out, agents: [one]}}}}
gateway: {agents: [scout, other], tenants: {team: {requests: 100/minute}}, timeout: 60}
"""
CASES = {
    ("agents:\n", "agents:\n  new: {card: new.md, port: 8103}\n"): "additive callers agents.new new",
    ("name: x\n", "name: y\n"): "breaking operators name changed",
    ('version: "1.0.0"', 'version: "2.0.0"'): "cosmetic callers version changed",
    ("port: 8101", "port: 8107"): "breaking callers agents.scout.url changed",
    ("port: 8101,", "port: 8101, publish: false,"): "breaking callers agents.scout.url gone",
    ("port: 8101,", "port: 8101, publish: 0.0.0.0,"): "additive callers agents.scout.publish new",
    ("registry: {", "registry: {publish: 0.0.0.0, "): "additive callers registry.publish new",
    ("gateway: {", "gateway: {publish: 0.0.0.0, "): "additive callers gateway.publish new",
    ("port: 8101,", "port: 8101, title: Eye,"): "cosmetic callers agents.scout.title changed",
    ("port: 8101,", "port: 8101, instance_scope: request,"): "breaking callers agents.scout.instance_scope changed",
    ("port: 8101,", "port: 8101, functions: [fetch],"): "additive callers agents.scout.functions.fetch new",
    (" keep_conversations: true,", ""): "breaking callers agents.scout.keep_conversations gone",
    ("keys/key}", "keys/k2}"): "breaking operators agents.scout.secrets.KEY.file changed",
    ("{KEY: {file: keys/key}}", "{KEY: {file: keys/key}, L: {file: l}}"): (
        "breaking operators agents.scout.secrets.L new"
    ),
    (", secrets: {KEY: {file: keys/key}}", ""): "additive operators agents.scout.secrets.KEY gone",
    ("{ann: {file: keys/ann}}", "{bob: {file: b}, ann: {file: keys/ann}}"): (
        "additive callers agents.other.access.tokens.bob new"
    ),
    ("{ann: {file: keys/ann}}", "{bob: {file: keys/ann}}"): "breaking callers agents.other.access.tokens.ann gone",
    (", access: {tokens: {ann: {file: keys/ann}}}", ""): "additive callers agents.other.access.protected gone",
    ("keys/key}}", "keys/key}}, access: {tokens: {z: {file: z}}}"): (
        "breaking callers agents.scout.access.protected new"
    ),
    ("PASSWORD: canary", "PASSWORD: canary-2"): "cosmetic operators agents.other.env.PASSWORD changed",
    ("url: canary", "url: canary-2"): "cosmetic operators agents.other.env.url changed",
    ("[--one, canary]", "[canary, --one]"): "cosmetic operators services.tides.args changed",
    ("port: 8111,", "port: 8111, state: true,"): "additive operators services.tides.state new",
    ("port: 8111", "port: 8112"): "cosmetic operators services.tides.port changed",
    ("{requests: 100/minute}", "{requests: 100/minute, callers: [ann]}"): (
        "breaking callers gateway.tenants.team.callers.ann new"
    ),
    (
        "services: {tides: {module: tides, port: 8111, args: [--one, canary]}}",
        "services: {}",
    ): "cosmetic operators services.tides gone",
    ("services: {", "services: {sun: {module: sun, port: 8112}, "): "additive operators services.sun new",
    ("[scout, other]", "[scout]"): "breaking callers gateway.agents.other gone",
    ("100/minute", "20/minute"): "breaking callers gateway.tenants.team.requests changed",
    ("100/minute", "200/minute"): "additive callers gateway.tenants.team.requests changed",
    ("timeout: 60", "timeout: 60, grants: [{caller: ann, agent: other, tools: [send_message]}]"): (
        "breaking callers gateway.grants new"
    ),
    ("timeout: 60", "timeout: 30"): "breaking callers gateway.timeout changed",
    ("timeout: 60", "timeout: 60, port: 24199"): "breaking callers gateway.url changed",
    ("agents: [one]", "agents: [one, two]"): "breaking callers registry.registration.tokens.out.agents.two new",
    ("reach: [a.example]", "reach: [a.example, b.example]"): (
        "additive callers registry.registration.reach.b.example new"
    ),
    ("gateway:", "registry_port: 24209\ngateway:"): "breaking callers registry.url changed",
}


def between(old: str, new: str) -> list[changes.Change]:
    return changes.between(facts.of_fleet(fleet(old), "container"), facts.of_fleet(fleet(new), "container"))


@pytest.mark.parametrize(("edit", "expected"), CASES.items(), ids=CASES.values())
def test_an_edit_has_its_effect(edit: tuple[str, str], expected: str) -> None:
    assert edit[0] in BASE
    found = between(BASE, BASE.replace(*edit, 1))
    assert expected in [f"{change.effect} {change.whom} {change.key} {change.what}" for change in found]
    assert "canary" not in changes.text(found)


@pytest.mark.parametrize(
    ("tenants", "key"),
    [("{team: {callers: [ann]}}", "team.callers.bob"), ("{other: {callers: [bob]}}", "team"), ("{}", "team")],
    ids=["a caller", "a tenant", "the only tenant"],
)
def test_who_loses_its_tenant_is_cut_off(tenants: str, key: str) -> None:
    """A verified caller without a tenant is refused at `/mcp`, and without any tenant that has no tools."""
    text = BASE.replace("{requests: 100/minute}", "{callers: [ann, bob]}")
    differences = between(text, text.replace("{team: {callers: [ann, bob]}}", tenants))
    assert ("breaking", f"gateway.tenants.{key}", "gone") in [
        (entry.effect, entry.key, entry.what) for entry in differences
    ]


def test_a_port_is_a_change_where_no_url_has_it() -> None:
    hidden = BASE.replace("port: 8101,", "port: 8101, publish: false,")
    assert [change.key for change in between(BASE, BASE.replace("8101", "8107"))] == ["agents.scout.url"]
    assert changes.text(between(hidden, hidden.replace("8101", "8107"))) == (
        "cosmetic: asks nothing of anybody\n  operators  agents.scout.port  8101 -> 8107\n"
    )


def test_a_section_that_goes_says_it_for_all_that_is_in_it() -> None:
    (change,) = between(BASE, BASE[: BASE.index("gateway:")])
    assert (change.effect, change.key, change.what) == ("breaking", "gateway", "gone")


def test_the_same_is_no_difference() -> None:
    assert between(BASE, f"# a comment\n{BASE}") == []
    assert changes.text([]) == "no difference\n"
    assert changes.document([]) == {"breaking": 0, "additive": 0, "cosmetic": 0, "changes": []}


def test_what_breaks_comes_first_with_both_values() -> None:
    found = between(BASE, BASE.replace('"1.0.0"', '"2.0.0"').replace("8101", "8107"))
    assert changes.text(found) == (
        "breaking: has to be reacted to\n"
        "  callers    agents.scout.url  http://localhost:8101/mcp -> http://localhost:8107/mcp\n"
        "cosmetic: asks nothing of anybody\n"
        "  callers    version           1.0.0 -> 2.0.0\n"
    )
    document = changes.document(found)
    assert document["changes"][1] == {  # type: ignore[index]
        "effect": "cosmetic",
        "whom": "callers",
        "key": "version",
        "what": "changed",
        "before": "1.0.0",
        "after": "2.0.0",
    }


def test_with_a_registry_only_what_callers_see_is_compared() -> None:
    old = facts.callers_part(facts.of_fleet(fleet(BASE), "container"))
    new = facts.of_fleet(fleet(BASE.replace("canary", "x").replace("8102", "8109")), "container")
    assert [change.key for change in changes.between(old, new)] == ["agents.other.url"]


def test_an_address_to_listen_on_that_is_narrower_shuts_callers_out() -> None:
    def published(value: str) -> Facts:
        return facts.of_fleet(fleet(BASE.replace("port: 8101,", f"port: 8101, publish: {value},")), "container")

    (change,) = changes.between(published("0.0.0.0"), published("true"))
    assert (change.effect, change.whom, change.key, change.before) == (
        "breaking",
        "callers",
        "agents.scout.publish",
        "0.0.0.0",
    )
    assert changes.between(published("127.0.0.1"), published("true")) == []
