"""`defaults` and `access` merged into the agents: every key arrives, and what an agent says itself wins."""

from __future__ import annotations

import operator
from dataclasses import fields
from typing import Any

import pytest

from pallas_contract import __version__
from pallas_contract.fleet.access_model import Access, AgentAccess, Jwt
from pallas_contract.fleet.base import Resources, SecretFile
from pallas_contract.fleet.model import Agent, AgentDefaults, Fleet, Images
from pallas_contract.fleet.resolved import ResolvedAgent, ResolvedFleet, resolve

VALUES: dict[str, tuple[Any, Any]] = {
    "replicas": (3, 2),
    "resources": (Resources(memory="1Gi"), Resources(memory="2Gi")),
    "env": ({"A": "fleet", "B": "fleet"}, {"B": "agent"}),
    "secrets": (
        {"A": SecretFile(file="s/fleet"), "B": SecretFile(file="s/fleet")},
        {"B": SecretFile(file="s/agent")},
    ),
    "instance_scope": ("request", "shared"),
    "keep_conversations": (True, False),
    "egress": (True, False),
    "skills": (["skills"], []),
    "shell": (True, False),
    "publish": ("0.0.0.0", False),
    "files": (["a.csv"], ["b.csv"]),
    "labels": ({"a": "fleet", "b": "fleet"}, {"b": "agent"}),
    "image": ("fleet:1", "agent:1"),
    "requirements": ("fleet.txt", "agent.txt"),
}
"""Each key of `defaults`: a value there that no agent has by itself, and another one of an agent."""


def agent(**keys: Any) -> Agent:
    return Agent(module="m.a", port=8101, **keys)


def resolved(own: Agent, **keys: Any) -> ResolvedAgent:
    return resolve(Fleet(name="x", agents={"a": own}, **keys)).agents["a"]


@pytest.mark.parametrize("key", AgentDefaults.model_fields)
def test_every_key_of_defaults_arrives(key: str) -> None:
    """A key that is new in the model fails here until it has a value above."""
    of_the_fleet, of_the_agent = VALUES[key]
    assert getattr(resolved(agent()), key) != of_the_fleet, "the value proves nothing: every agent has it"
    defaults = AgentDefaults(**{key: of_the_fleet})
    assert getattr(resolved(agent(), defaults=defaults), key) == of_the_fleet
    both = getattr(resolved(agent(**{key: of_the_agent}), defaults=defaults), key)
    joined = {dict: operator.or_, list: operator.add}.get(type(AgentDefaults.model_fields[key].default))
    assert both == (joined(of_the_fleet, of_the_agent) if joined else of_the_agent)


def test_null_is_as_good_as_nothing() -> None:
    assert resolved(agent(replicas=None), defaults=AgentDefaults(replicas=3)).replicas == 3


def test_nothing_is_none_where_there_is_a_default() -> None:
    """`egress`, `skills` and images follow from files beside this one, a card takes the place of a module."""
    absent = {"egress", "card", "skills", "image", "requirements", "through"}
    assert {key for key, value in resolved(agent()) if value is None} == absent
    fleet = resolve(Fleet(name="x", agents={"a": agent()}))
    assert {key.name for key in fields(fleet) if getattr(fleet, key.name) is None} == {
        "gateway",
        "public_url",
        "telemetry",
    }


def test_every_key_of_the_file_is_in_the_resolved_fleet() -> None:
    merged = {"defaults", "access"}
    assert {key.name for key in fields(ResolvedFleet)} == Fleet.model_fields.keys() - merged | {"written"}


def test_images_have_names() -> None:
    images = resolve(Fleet(name="x", agents={"a": agent()})).image
    assert (images.agent, images.registry) == (f"pallas-agent:{__version__}", f"pallas-registry:{__version__}")
    images = resolve(Fleet(name="x", agents={"a": agent()}, image=Images(agent="mine:1", code="baked"))).image
    assert (images.agent, images.registry, images.code) == ("mine:1", f"pallas-registry:{__version__}", "baked")


UI, OWN = SecretFile(file="s/ui"), SecretFile(file="s/own")
ISSUER, OTHER = Jwt(issuer="https://id.example", jwks_file="k"), Jwt(issuer="https://other.example", jwks_file="k")


@pytest.mark.parametrize(
    ("own", "tokens", "jwt"),
    [
        (AgentAccess(), {"ui": UI}, ISSUER),
        (AgentAccess(tokens={"b": OWN}), {"ui": UI, "b": OWN}, ISSUER),
        (AgentAccess(tokens={"ui": OWN}), {"ui": OWN}, ISSUER),
        (AgentAccess(jwt=OTHER), {"ui": UI}, OTHER),
        (AgentAccess(anonymous=True), {}, None),
    ],
)
def test_callers_of_the_fleet_and_the_agents_own(own: AgentAccess, tokens: dict, jwt: Jwt | None) -> None:
    access = resolved(agent(access=own), access=Access(tokens={"ui": UI}, jwt=ISSUER)).access
    assert (access.tokens, access.jwt) == (tokens, jwt)
