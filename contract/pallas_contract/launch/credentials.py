"""Who presents which token to whom: what follows from `access` and `depends_on` together. Pure."""

from __future__ import annotations

from pallas_contract import names
from pallas_contract.fleet.base import SecretFile
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.launch import addresses


def protected(fleet: ResolvedFleet, name: str) -> bool:
    """Whether agent `name` asks its callers for a token."""
    own = fleet.agents[name].access
    return bool(own.tokens or own.jwt)


def resource(fleet: ResolvedFleet, name: str, placement: addresses.Placement) -> str:
    """The URL that stands for an agent in tokens and metadata (RFC 8707, RFC 9728): where it is published."""
    return addresses.agent_url(fleet, name, placement) or addresses.mcp_url(fleet, name, placement)


def audience(fleet: ResolvedFleet, name: str, placement: addresses.Placement) -> str:
    """The `aud` that a token for agent `name` has."""
    jwt = fleet.agents[name].access.jwt
    return (jwt.audience if jwt else None) or resource(fleet, name, placement)


def presented(fleet: ResolvedFleet, caller: str) -> dict[str, SecretFile]:
    """The tokens that agent `caller` presents, by the agent it presents them to: those with its own name on them.

    One that gets the token of the caller's caller gets no other: it must not do for a stranger what it does for us.
    """
    agent = fleet.agents[caller]
    forward = set(agent.access.forward)
    peers = sorted(peer for peer in agent.depends_on if peer in fleet.agents and peer not in forward)
    accepted = {peer: fleet.agents[peer].access.tokens for peer in peers}
    return {peer: tokens[caller] for peer, tokens in accepted.items() if caller in tokens}


def files(fleet: ResolvedFleet, name: str) -> dict[str, SecretFile]:
    """File name in the secrets folder -> file, for all that agent `name` needs to check and to present tokens."""
    own = fleet.agents[name].access
    out = {names.token_file(caller): secret for caller, secret in own.tokens.items()}
    if own.jwt and own.jwt.jwks_file:
        out[names.KEYS_FILE] = SecretFile(file=own.jwt.jwks_file)
    return out | {names.call_token(peer): secret for peer, secret in presented(fleet, name).items()}


def places(fleet: ResolvedFleet, name: str) -> dict[str, tuple[str, ...]]:
    """Path in agents.yaml of each of `files`."""
    own, out = fleet.agents[name].access, {}
    for caller in own.tokens:
        out[names.token_file(caller)] = (*_owner(fleet, name, caller), "tokens", caller, "file")
    if own.jwt and own.jwt.jwks_file:
        out[names.KEYS_FILE] = (*jwt_owner(fleet, name), "jwt", "jwks_file")
    for peer in presented(fleet, name):
        out[names.call_token(peer)] = (*_owner(fleet, peer, name), "tokens", name, "file")
    return out


def _owner(fleet: ResolvedFleet, name: str, caller: str) -> tuple[str, ...]:
    return ("agents", name, "access") if caller in fleet.written.agents[name].access.tokens else ("access",)


def jwt_owner(fleet: ResolvedFleet, name: str) -> tuple[str, ...]:
    return ("agents", name, "access") if fleet.written.agents[name].access.jwt else ("access",)
