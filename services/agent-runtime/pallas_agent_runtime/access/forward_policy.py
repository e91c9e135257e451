"""The forwarding of a caller's token to a server (seed 001, Bearer Token Propagation): listed, and meant for it."""

from __future__ import annotations

from pallas_agent_runtime.config.settings import Settings
from pallas_contract.launch import credentials
from pallas_service.access.caller import Caller


def may_go_on(settings: Settings, server: str, url: str, caller: Caller) -> bool:
    """Return whether the caller's token may go on to `server`: MCP forbids it unless that is among the audiences.

    A JWT must name the server in its `aud`: an agent by its audience, any other by `url`. A static token has no
    audience; it is meant for the agents that accept it from the same caller. An agent is one that is called under its
    name as a peer: what else has the name, by a URL of fast-agent's configuration, is a stranger.
    """
    if server not in settings.forward:
        return False
    target = settings.fleet.agents[server].access if server in settings.subagents else None
    if caller.issuer is None:
        token_file = settings.agent.access.tokens.get(caller.name)
        return target is not None and token_file is not None and target.tokens.get(caller.name) == token_file
    if target is None:
        return url in caller.audiences
    audience = credentials.audience(settings.fleet, server, settings.placement)
    return target.jwt is not None and target.jwt.issuer == caller.issuer and audience in caller.audiences
