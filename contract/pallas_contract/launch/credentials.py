"""The tokens that agents and the gateway present, as follows from `access` and `depends_on` together. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pallas_contract import names
from pallas_contract.fleet.base import SecretFile
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses


def protected(fleet: ResolvedFleet, name: str) -> bool:
    """Return whether agent `name` asks its callers for a token."""
    access = fleet.agents[name].access
    return bool(access.tokens or access.jwt)


def resource(fleet: ResolvedFleet, name: str, placement: addresses.Placement) -> str:
    """Return the URL that stands for an agent in tokens and metadata (RFC 8707, RFC 9728): where it is published."""
    return addresses.agent_url(fleet, name, placement) or addresses.mcp_url(fleet, name, placement)


def audience(fleet: ResolvedFleet, name: str, placement: addresses.Placement) -> str:
    """Return the `aud` that a token for agent `name` has."""
    jwt = fleet.agents[name].access.jwt
    return (jwt.audience if jwt else None) or resource(fleet, name, placement)


def presented(fleet: ResolvedFleet, caller: str) -> dict[str, SecretFile]:
    """Return the tokens that agent `caller` presents, by the member it calls: those listed there under its name.

    Of what is called through the gateway it is the gateway that asks. One that gets the token of the caller's caller
    gets no other: it must not do for a stranger what it does for us.
    """
    agent = fleet.agents[caller]
    forward = set(agent.access.forward)
    peers = sorted(peer for peer in agent.depends_on if fleet.is_member(peer) and peer not in forward)
    accepted = {peer: _accepted(fleet, peer) for peer in peers}
    return {peer: tokens[caller] for peer, tokens in accepted.items() if caller in tokens}


def _accepted(fleet: ResolvedFleet, name: str) -> Mapping[str, SecretFile]:
    """Return the tokens that callers of a member show, by caller: the gateway's where it stands before that one."""
    if fleet.gateway and fleet.is_through(name):
        return fleet.gateway.access.tokens
    return fleet.agents[name].access.tokens if name in fleet.agents else {}


def presented_by_gateway(fleet: ResolvedFleet) -> dict[str, SecretFile]:
    """Return the tokens that the gateway presents, by agent: those listed there under its name."""
    accepted = {name: fleet.agents[name].access.tokens for name in fleet.behind_gateway if name in fleet.agents}
    return {name: tokens[names.GATEWAY] for name, tokens in accepted.items() if names.GATEWAY in tokens}


def gateway_resource(fleet: ResolvedFleet, placement: addresses.Placement) -> str:
    """Return the URL that stands for the gateway in tokens and metadata: where it is published, without a path."""
    return addresses.gateway_url(fleet, placement)


def token_owner(fleet: ResolvedFleet, name: str, caller: str) -> tuple[str, ...]:
    """Return the path in agents.yaml of the section with the token that `caller` shows to reach `name`."""
    written = fleet.written.gateway
    if written and caller != names.GATEWAY and fleet.is_through(name):
        return ("gateway", "access") if caller in written.access.tokens else ("access",)
    return ("agents", name, "access") if caller in fleet.written.agents[name].access.tokens else ("access",)


def jwt_owner(fleet: ResolvedFleet, name: str) -> tuple[str, ...]:
    """Return the path in agents.yaml of the section with the issuer that agent `name` trusts."""
    return ("agents", name, "access") if fleet.written.agents[name].access.jwt else ("access",)
