"""agents.yaml decided: `defaults` and the fleet's `access` merged into every agent, once, when the file is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from pallas_contract import names
from pallas_contract.fleet import images
from pallas_contract.fleet.access_model import Access, AgentAccess, Gateway
from pallas_contract.fleet.base import Publish, Resources
from pallas_contract.fleet.model import (
    Agent,
    AgentDefaults,
    Fleet,
    Networks,
    Registry,
    Scope,
    Service,
    Telemetry,
)


class ResolvedAgent(Agent):
    """An agent with everything that applies to it; a default here is that of an agent nobody said it of."""

    name: str
    title: str
    replicas: int = 1
    resources: Resources = Resources()
    instance_scope: Scope = "connection"
    keep_conversations: bool = False
    shell: bool = False
    publish: Publish = True

    @property
    def slug(self) -> str:
        """Host name and registry name."""
        return names.slug(self.name)

    @property
    def required(self) -> list[str]:
        """Names of what must be ready before this agent starts, in the file's order."""
        return [peer for peer, need in self.depends_on.items() if need.required]


@dataclass(frozen=True)
class ResolvedFleet:
    """The whole file with nothing left to look up elsewhere. None stands only where nothing is the answer."""

    name: str
    version: str
    host: str
    public_url: str | None
    namespace: str
    registry_port: int
    agents: Mapping[str, ResolvedAgent]
    services: Mapping[str, Service]
    image: images.ResolvedImages
    gateway: Gateway | None
    """With the fleet's `access` in its own."""
    registry: Registry
    telemetry: Telemetry | None
    networks: Networks
    written: Fleet = field(repr=False)
    """The file as it was written: for rules about what was written, and for places in messages."""

    def is_member(self, name: str) -> bool:
        """Return whether `name` is an agent or a service."""
        return name in self.agents or name in self.services

    def is_through(self, name: str) -> bool:
        """Return whether an agent or service is reached through the gateway alone."""
        member = self.agents.get(name) or self.services.get(name)
        return self.gateway is not None and member is not None and member.through is not None

    @cached_property
    def through(self) -> tuple[str, ...]:
        """Names of the agents and services that are reached through the gateway alone, in the file's order."""
        return tuple(name for name in (*self.agents, *self.services) if self.is_through(name))

    @cached_property
    def behind_gateway(self) -> tuple[str, ...]:
        """Names of the agents that the gateway calls: those it leads to, then those `through` it besides."""
        named = self.gateway.agents if self.gateway else []
        return (*named, *(name for name in self.through if name in self.agents and name not in named))

    @cached_property
    def slugs(self) -> frozenset[str]:
        """Host names of all agents and services."""
        return frozenset(names.slug(name) for name in (*self.agents, *self.services))


def resolve(fleet: Fleet) -> ResolvedFleet:
    """Return `fleet` with all defaults merged; linear in its agents and their callers."""
    values: dict[str, Any] = {
        key.name: getattr(fleet, key.name) for key in fields(ResolvedFleet) if key.name in Fleet.model_fields
    }
    values["namespace"] = fleet.namespace or f"local.{names.slug(fleet.name.lower()).replace(' ', '-')}"
    values["agents"] = {name: _agent(name, agent, fleet) for name, agent in fleet.agents.items()}
    values["image"] = images.resolve(fleet.image)
    values["gateway"] = _gateway(fleet)
    return ResolvedFleet(**values, written=fleet)


def _agent(name: str, agent: Agent, fleet: Fleet) -> ResolvedAgent:
    values = {key: getattr(agent, key) for key in Agent.model_fields}
    # Walked and not listed: a key that is new in `defaults` arrives without a line here.
    values |= {key: _merged(key, agent, fleet.defaults) for key in AgentDefaults.model_fields}
    access = _access(agent.access, fleet.access)
    if agent.through:
        # nobody else has a way to it: neither a port of the host nor a token
        values["publish"] = agent.publish or False
        tokens = {caller: file for caller, file in access.tokens.items() if caller == names.GATEWAY}
        access = access.model_copy(update={"tokens": tokens, "jwt": None})
    values |= {"name": name, "title": agent.title or names.title(name), "access": access}
    # What nobody said is left to the defaults of ResolvedAgent.
    return ResolvedAgent(**{key: value for key, value in values.items() if value is not None})


def _merged(key: str, agent: Agent, defaults: AgentDefaults) -> Any:
    """Return the value of one key: mappings and lists are joined, any other value of the agent's replaces.

    A list that may be None (`skills`) is one value.
    """
    value = getattr(agent, key)
    base = getattr(defaults, key)
    if isinstance(base, Mapping):
        return {**base, **value}
    if isinstance(AgentDefaults.model_fields[key].default, list):
        return [*base, *value]
    return value if value is not None and key in agent.model_fields_set else base


def _access(agent: AgentAccess, fleet: Access) -> AgentAccess:
    """Return the fleet's callers and the agent's own: one token per caller, the agent's before the fleet's."""
    # Without the fleet's callers: a token that nobody has to present must not be asked for.
    if agent.anonymous:
        return AgentAccess(anonymous=True)
    return agent.model_copy(update={"tokens": {**fleet.tokens, **agent.tokens}, "jwt": agent.jwt or fleet.jwt})


def _gateway(fleet: Fleet) -> Gateway | None:
    """Return the gateway with the fleet's callers and its own, without itself: its token is for the agents."""
    if fleet.gateway is None:
        return None
    own = fleet.gateway.access
    tokens = {caller: file for caller, file in {**fleet.access.tokens, **own.tokens}.items() if caller != names.GATEWAY}
    access = own.model_copy(update={"tokens": tokens, "jwt": own.jwt or fleet.access.jwt})
    return fleet.gateway.model_copy(update={"access": access})
