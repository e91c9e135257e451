"""The gateway's grants as CEL for an edge: it lets through all that the gateway's own policy does.

CEL of these few words is Python's, but for its operators; so it is evaluated here without an interpreter of its own.
"""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import pytest

from pallas_contract.fleet import source
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.validate import load
from pallas_gateway.policy.policy import Policy
from pallas_gen.front.door import Door, door
from pallas_gen.targets.helm.edge import rules
from pallas_service.access.caller import Caller

ISSUER = "https://id.example.com"
FLEET = """\
name: x
access: {tokens: {phone: {file: p}, gateway: {file: g}}}
gateway:
  agents: [front, back]
  access: {jwt: {issuer: "https://id.example.com", jwks_url: "https://id.example.com/k", audience: x}}
  tenants:
    acme: {subjects: [bo, 'c"\\o'], callers: [phone]}
    none: {callers: []}
  grants:
    - {subject: anna, agent: front, tools: ["*"]}
    - {subject: dan, agent: front, tools: ["*"], paths: {path: [home/]}}
    - {tenant: acme, agent: back, tools: [send_message, "read_*", "a.c*e"]}
    - {subject: bo, agent: front, tools: [get_health]}
    - {caller: phone, agent: front, tools: [get_health]}
agents:
  front: {card: f.md, port: 1, publish: false}
  back: {card: b.md, port: 2, publish: false}
"""
SUBJECTS = ["anna", "bo", 'c"\\o', "dan", "eve"]
TOOLS = ["send_message", "front", "back", "get_health", "read_", "read_task", "a.cde", "abcde", "xread_x", "write"]


@pytest.fixture(scope="module")
def fleet() -> ResolvedFleet:
    return load.parse(source.parse(FLEET.replace("    none: {callers: []}\n", ""), name="agents.yaml"))


def passes(expression: str, subject: str | None, tool: str) -> bool:
    """What an evaluator of CEL says."""
    text = re.sub(r"!(?=has)", "not ", expression).replace("&&", " and ").replace("||", " or ")
    told = {
        "has": lambda value: value is not None,
        "jwt": SimpleNamespace(sub=subject),
        "mcp": SimpleNamespace(tool=SimpleNamespace(name=Text(tool))),
        "true": True,
    }
    return bool(eval(text, {"__builtins__": {}}, told))


class Text(str):
    def matches(self, pattern: str) -> bool:
        return re.search(pattern, self) is not None


def test_a_call_passes_where_some_grant_is_about_it_and_nowhere_else(fleet: ResolvedFleet) -> None:
    policy = Policy(fleet.gateway, fleet.agents)
    asked = door(fleet, fleet.gateway)
    for host, subject, tool in itertools.product(asked.grants, SUBJECTS, TOOLS):
        caller = Caller(name=subject, identity=subject, token="", issuer=ISSUER)
        allowed = policy.decide(caller, host, tool).verdict == "allowed"
        assert passes(rules.allow(asked, host), subject, tool) == allowed, (host, subject, tool)


def test_who_has_no_jwt_is_left_to_the_gateway(fleet: ResolvedFleet) -> None:
    assert passes(rules.allow(door(fleet, fleet.gateway), "back"), None, "write")


@pytest.mark.parametrize("change", [{"open": True}, {"issuer": ""}])
def test_where_nothing_is_to_be_told_everything_passes(fleet: ResolvedFleet, change: dict[str, object]) -> None:
    asked = door(fleet, fleet.gateway)
    made = Door(**{name: getattr(asked, name) for name in Door.__slots__} | change)
    assert {rules.allow(made, host) for host in made.grants} == {rules.ANYTHING}


def test_what_is_longer_than_agentgateway_takes_is_left_to_the_gateway(fleet: ResolvedFleet) -> None:
    many = ", ".join(f"subject-number-{number:06}" for number in range(1000))
    text = FLEET.replace("none: {callers: []}", f"none: {{subjects: [{many}]}}")
    text = text.replace("  grants:\n", "  grants:\n    - {tenant: none, agent: back, tools: [write]}\n")
    large = load.parse(source.parse(text, name="agents.yaml"))
    asked = door(large, large.gateway)
    assert rules.allow(asked, "back") == rules.ANYTHING
    assert rules.values(asked).tenant == ""


def test_tenants_are_told_by_their_subjects(fleet: ResolvedFleet) -> None:
    told = rules.values(door(fleet, fleet.gateway))
    assert told.tenant == 'jwt.sub in ["bo", "c\\"\\\\o"] ? "acme" : ""'
    assert told.requests == {"acme": 100}
    assert told.tokens
