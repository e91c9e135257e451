"""Rules for `through: gateway`: there is a gateway, no way leads around it, and its callers can show who they are."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.model import Service
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, credentials
from pallas_contract.problems import Problem

_FORWARD = "the gateway takes the token of the agent, and a caller's token ends there: remove it here"


def problems(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per rule about members that are reached through the gateway alone, placed in `tree`."""
    members = [("agents", name) for name, agent in fleet.agents.items() if agent.through]
    members += [("services", name) for name, service in fleet.services.items() if service.through]
    if fleet.gateway is None:
        for kind, name in members:
            hint = "add `gateway: {agents: [NAME]}`, or remove `through`"
            message = "there is no `gateway` in this file"
            yield tree.problem(kind, name, "through", message=message, hint=hint, code=Code.THROUGH_NO_GATEWAY)
        return
    for kind, name in members:
        if fleet.networks.mode == "flat":
            message = "with `networks: flat` everything reaches everything, so nothing has to go through the gateway"
            hint = "remove `networks: flat`, or `through`"
            yield tree.problem(kind, name, "through", message=message, hint=hint, code=Code.AROUND_GATEWAY)
        if kind == "agents":
            yield from _agent(fleet, name, tree)
        else:
            yield from _service(name, fleet.services[name], tree)
    for name in fleet.agents:
        yield from _callers(fleet, name, tree)


def _agent(fleet: ResolvedFleet, name: str, tree: Source) -> Iterator[Problem]:
    """Yield a problem per way around the gateway that an agent says it has."""
    written = fleet.written.agents[name]
    named = fleet.gateway.agents if fleet.gateway else ()
    if name not in named and name not in credentials.presented_by_gateway(fleet):
        message = f"the gateway has no token for `{name}`: callers could go around it"
        hint = f"add `{names.GATEWAY}: {{file: secrets/gateway.txt}}` to `access.tokens`, or to that of `{name}`"
        yield tree.problem("agents", name, "through", message=message, hint=hint, code=Code.GATEWAY_TOKEN)
    if written.publish:
        message = "its port would be reached around the gateway"
        hint = "remove it: the gateway is what is published"
        yield tree.problem("agents", name, "publish", message=message, hint=hint, code=Code.AROUND_GATEWAY)
    for key in ("anonymous", "jwt", "forward"):
        if getattr(written.access, key):
            message = f"only the gateway calls `{name}`, with its own token"
            hint = "remove it; who may call through the gateway stands in `gateway.access` and `depends_on`"
            yield tree.problem("agents", name, "access", key, message=message, hint=hint, code=Code.AROUND_GATEWAY)
    for caller in written.access.tokens:
        if caller != names.GATEWAY:
            message = f"only the gateway calls `{name}`, and no token of `{caller}` is looked at here"
            hint = "move it to `access.tokens` of the fleet, or of `gateway`"
            path = ("agents", name, "access", "tokens", caller)
            yield tree.problem(*path, message=message, hint=hint, code=Code.AROUND_GATEWAY)


def _service(name: str, service: Service, tree: Source) -> Iterator[Problem]:
    """Yield the problems of a service that the gateway cannot stand before."""
    path = ("services", name)
    if service.provides != "mcp" or addresses.service_path(service).endswith("/sse"):
        message = "the gateway leads to MCP servers by streamable HTTP, and to nothing else"
        yield tree.problem(
            *path, "through", message=message, hint="remove it: `depends_on` decides", code=Code.THROUGH_NOT_MCP
        )
    if service.calls:
        # in compose a service listens on all its networks, also on that of an agent that it calls
        message = "in compose an agent that a service calls could call it back, around the gateway"
        yield tree.problem(
            *path, "calls", message=message, hint="remove `calls`, or `through`", code=Code.AROUND_GATEWAY
        )


def _callers(fleet: ResolvedFleet, name: str, tree: Source) -> Iterator[Problem]:
    """Yield a problem per call through the gateway for which agent `name` has no token of its own."""
    agent = fleet.agents[name]
    listed = tree.data["agents"][name].get("depends_on")
    for index, peer in enumerate(agent.depends_on):
        if not fleet.is_through(peer):
            continue
        if peer in agent.access.forward:
            path = ("agents", name, "access", "forward", agent.access.forward.index(peer))
            message = f"`{peer}` is called through the gateway"
            yield tree.problem(*path, message=message, hint=_FORWARD, code=Code.NO_SHARED_TRUST)
        elif peer not in credentials.presented(fleet, name):
            message = f"`{peer}` is called through the gateway, where `{name}` has no token"
            hint = f"put one under the name `{name}` into `access.tokens`, or `gateway.access.tokens`"
            place = index if isinstance(listed, list) else peer
            yield tree.problem(
                "agents", name, "depends_on", place, message=message, hint=hint, code=Code.CALL_WITHOUT_TOKEN
            )
