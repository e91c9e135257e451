"""Rules for `gateway`: where it leads, and that its door is as strict as what is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import get_args

from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.fleet.access_model import Gateway
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, credentials
from pallas_contract.problems import Problem
from pallas_contract.validate import access_rules
from pallas_contract.validate.entry import policy_rules, registered_rules, store_rules
from pallas_contract.validate.suggestions import Suggestions

_AT = "gateway"


def problems(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per rule about the gateway that `fleet` breaks, placed in `tree`."""
    gateway = fleet.gateway
    if gateway is None or fleet.written.gateway is None:
        return
    written = fleet.written.gateway.access
    yield from access_rules.section((_AT, "access"), written, tree)
    if names.GATEWAY in written.tokens:
        message = "is the name under which the gateway itself calls agents, and no caller's"
        hint = "its token belongs into `access.tokens` of the fleet or of the agents; give this caller another name"
        yield tree.problem(
            _AT, "access", "tokens", names.GATEWAY, message=message, hint=hint, code=Code.GATEWAY_AS_CALLER
        )
    yield from _tokens(fleet, gateway, tree)
    yield from _port(fleet, gateway, tree)
    yield from _agents(fleet, gateway, tree)
    yield from _tenants(gateway, tree)
    yield from _tools(fleet, gateway, tree)
    yield from registered_rules.problems(fleet, gateway, tree)
    yield from _services(fleet, gateway, tree)
    yield from policy_rules.problems(fleet, gateway, tree)
    yield from store_rules.problems(fleet, gateway, tree)
    address = addresses.bind_address(gateway.publish)
    beyond = not ip_address(address).is_loopback
    if beyond and not _asks(gateway):
        message = f"on {address} everybody could call the agents: the gateway asks for no token"
        hint = "add `access` with `tokens` or `jwt`, or `publish: true` for this machine only"
        yield tree.problem(_AT, "publish", message=message, hint=hint, code=Code.OPEN_GATEWAY)
    jwt = gateway.access.jwt
    if jwt and jwt.audience is None:
        urls = [credentials.gateway_resource(fleet, placement) for placement in get_args(addresses.Placement)]
        if shared := [url for url in urls if access_rules.this_machine(url) or _host(url) == names.GATEWAY]:
            owner = (_AT, "access") if written.jwt else ("access",)
            message = f"without `audience` a token for the gateway is for {shared[0]}, which is the same in every fleet"
            hint = "set `public_url`, or `host`, to where clients reach the fleet, or set `audience`"
            yield tree.problem(*owner, "jwt", message=message, hint=hint, code=Code.NO_AUDIENCE)


def _host(url: str) -> str:
    return url.rpartition("/")[2].partition(":")[0]


def _asks(gateway: Gateway) -> bool:
    return bool(gateway.access.tokens or gateway.access.jwt)


def _tokens(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per caller whose token the gateway shows to an agent as its own."""
    written = fleet.written.gateway
    own = written.access.tokens if written else {}
    shown = {secret.file: agent for agent, secret in credentials.presented_by_gateway(fleet).items()}
    for caller, secret in gateway.access.tokens.items():
        agent = shown.get(secret.file)
        if agent is None:
            continue
        owner = (_AT, "access") if caller in own else ("access",)
        if owner == credentials.token_owner(fleet, agent, names.GATEWAY):
            continue  # two callers with one token, which the rules of that section say
        message = f"{secret.file} is what the gateway shows to `{agent}`: `{caller}` could call it as any caller"
        yield tree.problem(
            *owner, "tokens", caller, message=message, hint="give each its own token", code=Code.SAME_TOKEN
        )


def _port(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    taken = {fleet.registry_port: "registry_port"}
    taken |= {agent.port: f"agents.{name}" for name, agent in fleet.agents.items()}
    started = [name for name in fleet.services if addresses.is_started(fleet, name, "local")]
    taken |= {fleet.services[name].port: f"services.{name}" for name in started}
    if gateway.port in taken:
        message = f"port {gateway.port} is already used by {taken[gateway.port]}"
        yield tree.problem(_AT, "port", message=message, hint="give each its own port", code=Code.SAME_PORT)


def _tenants(gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per tenant nobody can be in, and per caller whose tenant is not one."""
    access = gateway.access
    owners: dict[tuple[str, str], str] = {}
    for name, tenant in gateway.tenants.items():
        path = (_AT, "tenants", name)
        if _asks(gateway) and not (tenant.callers or tenant.subjects):
            hint = "add `callers`, with names of `access.tokens`, or `subjects`, with the `sub` of their tokens"
            yield tree.problem(
                *path, message="has no callers: nobody's requests would be counted", hint=hint, code=Code.EMPTY_TENANT
            )
        for index, caller in enumerate(tenant.callers):
            if caller not in access.tokens:
                hint = Suggestions().hint(caller, sorted(access.tokens))
                message = f"there is no token for a caller `{caller}`"
                yield tree.problem(*path, "callers", index, message=message, hint=hint, code=Code.TENANT_MEMBER)
        if tenant.subjects and access.jwt is None:
            message = "nobody has a `sub`: the gateway takes no JWT"
            yield tree.problem(
                *path,
                "subjects",
                message=message,
                hint="add `jwt` to `access`, or name `callers`",
                code=Code.TENANT_MEMBER,
            )
        for key, members in (("callers", tenant.callers), ("subjects", tenant.subjects)):
            for index, member in enumerate(members):
                other = owners.setdefault((key, member), name)
                if other != name or members.index(member) != index:
                    message = f"`{member}` is in tenant `{other}` already"
                    yield tree.problem(
                        *path, key, index, message=message, hint="a caller has one tenant", code=Code.TWO_TENANTS
                    )


def _tools(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per tool that no MCP service of the fleet can have, and one where there is no `/mcp` for them."""
    if gateway.tools and not gateway.tenants:
        hint = "add `tenants: {NAME: {}}`: each call of these tools names one"
        yield tree.problem(_AT, "tools", message="needs `tenants`", hint=hint, code=Code.TOOLS_WITHOUT_TENANTS)
    if gateway.tasks and not gateway.tenants:
        hint = "add `tenants: {NAME: {}}`: graphs of tasks are run for one"
        yield tree.problem(_AT, "tasks", message="needs `tenants`", hint=hint, code=Code.TOOLS_WITHOUT_TENANTS)
    servers = sorted(name for name, service in fleet.services.items() if service.provides == "mcp")
    for tool, name in gateway.tools.items():
        if name in servers:
            continue
        message = f"there is no service `{name}`"
        hint = Suggestions().hint(name, servers)
        if name in fleet.services:
            message = f"`{name}` is no MCP server: it has `provides: {fleet.services[name].provides}`"
        elif name in fleet.agents:
            message = f"`{name}` is an agent, and tools of the gateway are those of services"
        yield tree.problem(_AT, "tools", tool, message=message, hint=hint, code=Code.NO_TOOL_SERVICE)


def _services(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per service for clients that the gateway does not stand before."""
    through = [name for name in fleet.through if name in fleet.services]
    for index, name in enumerate(gateway.services):
        if name not in through:
            message = f"the gateway leads to no service `{name}`"
            hint = Suggestions().hint(name, through) if through else "name one with `through: gateway`"
            if name in fleet.services:
                hint = f"give it `through: {names.GATEWAY}`: who depends on it would go around `grants` and `confirm`"
            yield tree.problem(_AT, "services", index, message=message, hint=hint, code=Code.NO_SUCH_MEMBER)


def _agents(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield the problems of each agent that the gateway leads to."""
    suggestions = Suggestions()
    presented = credentials.presented_by_gateway(fleet)
    for index, name in enumerate(gateway.agents):
        path = (_AT, "agents", index)
        if name not in fleet.agents:
            hint = suggestions.hint(name, sorted(fleet.agents))
            yield tree.problem(*path, message=f"there is no agent `{name}`", hint=hint, code=Code.NO_SUCH_MEMBER)
        elif name in gateway.agents[:index]:
            yield tree.problem(
                *path, message=f"`{name}` is there twice", hint="remove one of them", code=Code.AGENT_TWICE
            )
        elif _asks(gateway) and name not in presented:
            asks = credentials.protected(fleet, name)
            what = "asks for a token, and the gateway has none for it" if asks else "asks nobody for a token"
            message = f"`{name}` {what}: {'it could not be called' if asks else 'callers could go around the gateway'}"
            hint = f"add `{names.GATEWAY}: {{file: secrets/gateway.txt}}` to `access.tokens`, or to that of `{name}`"
            if fleet.agents[name].access.anonymous:
                hint = f"remove `anonymous` from agents.{name}.access, or `{name}` here"
            yield tree.problem(*path, message=message, hint=hint, code=Code.GATEWAY_TOKEN)
        elif not _asks(gateway) and credentials.protected(fleet, name):
            message = f"`{name}` asks for a token, and the gateway would let everybody in to it"
            yield tree.problem(
                *path, message=message, hint="add `access` to `gateway`, with `tokens` or `jwt`", code=Code.OPEN_GATEWAY
            )
