"""Rules over `access` and `depends_on` together: calls that would be refused, callers nobody could tell apart."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address
from typing import get_args
from urllib.parse import urlsplit

from pallas_contract.codes import Code
from pallas_contract.fleet.access_model import Access, AgentAccess
from pallas_contract.fleet.fastagent import Config
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.launch import addresses, credentials, program
from pallas_contract.problems import Problem


def problems(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per rule over `access` that `fleet` breaks."""
    if "access" in tree.data and not (fleet.written.access.tokens or fleet.written.access.jwt):
        hint = "add `tokens: {NAME: {file: secrets/NAME.txt}}` or `jwt: {issuer: ..., jwks_url: ...}`, or remove it"
        yield tree.problem(
            "access",
            message="has neither `tokens` nor `jwt`: nobody could be let in",
            hint=hint,
            code=Code.NOBODY_LET_IN,
        )
    yield from section(("access",), fleet.written.access, tree)
    for name, agent in fleet.written.agents.items():
        yield from section(("agents", name, "access"), agent.access, tree)
        yield from _agent(fleet, name, tree)
        yield from _calls(fleet, name, tree)
        yield from _static_tokens(fleet, name, tree)
    yield from _audiences(fleet, tree)


def _audiences(fleet: ResolvedFleet, tree: Source) -> Iterator[Problem]:
    """Yield a problem per section `jwt` whose tokens an agent of another fleet would take too.

    Every target is looked at, so that a fleet is refused on the laptop if it will be where it is installed.
    """
    sections: dict[tuple[str, ...], tuple[str, str]] = {}
    for name in fleet.agents:
        jwt = fleet.agents[name].access.jwt
        urls = [credentials.resource(fleet, name, placement) for placement in get_args(addresses.Placement)]
        shared = [url for url in urls if _in_every_fleet(fleet, name, url)]
        if jwt and jwt.audience is None and shared:
            sections.setdefault(credentials.jwt_owner(fleet, name), (name, shared[0]))
    for owner, (name, url) in sections.items():
        message = f"without `audience` a token for `{name}` is for {url}, which is the same in every fleet"
        inside = url == addresses.mcp_url(fleet, name, "container") and not _this_machine(fleet.host)
        where = "publish the agent (`publish`; `public_url` where it has replicas)" if inside else _PUBLIC
        yield tree.problem(
            *owner,
            "jwt",
            message=message,
            hint=f"{where}, or set `audience` to a name that no other fleet has",
            code=Code.NO_AUDIENCE,
        )


_PUBLIC = "set `public_url`, or `host`, to where clients reach the fleet"


def _in_every_fleet(fleet: ResolvedFleet, name: str, url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # a key that can be no host name, which is refused for that
        return False
    return url == addresses.mcp_url(fleet, name, "container") or _this_machine(host)


_OWN = re.compile(
    r"(.+\.)?(localhost|localdomain)|ip6-(localhost|loopback)|(host|gateway|kubernetes)\.docker\.internal"
)


def this_machine(url: str) -> bool:
    """Return whether `url` has a host that every machine means itself by."""
    try:
        return _this_machine(urlsplit(url).hostname or "")
    except ValueError:  # refused for that elsewhere
        return False


def _this_machine(host: str) -> bool:
    """Return whether every machine means itself, or what it runs on, by that name or address."""
    try:
        address = ip_address(host)
    except ValueError:
        try:
            address = ip_address(socket.inet_aton(host))  # 127.1, 0x7f000001: as clients read them
        except (OSError, ValueError):
            return _OWN.fullmatch(host.lower().removesuffix(".")) is not None
    return address.is_loopback or address.is_unspecified or address.is_link_local


def not_called(fleet: ResolvedFleet, name: str, config: Config, tree: Source) -> Iterator[Problem]:
    """Yield a problem per name in `access.forward` of agent `name` that it calls nothing by.

    One of the fleet's own names is only called as a dependency: no network and no URL leads there otherwise.
    """
    peers = program.peers(fleet, name, "container").keys()
    for index, server in enumerate(fleet.agents[name].access.forward):
        path = ("agents", name, "access", "forward", index)
        if server in config.commands and not fleet.is_member(server):
            hint = "remove it here: the program gets no token"
            yield tree.problem(
                *path,
                message=f"`{server}` is started by `{name}` and not called by HTTP",
                hint=hint,
                code=Code.FORWARD_NOT_CALLED,
            )
        elif server not in peers and (fleet.is_member(server) or server not in config.servers):
            hint = f"name one of its `depends_on`, or of mcp.servers in {config.file}"
            if fleet.is_member(server):
                hint = f"add `{server}` to agents.{name}.depends_on, or remove it here"
                if config.servers.get(server):
                    hint += f"; a server outside of the fleet needs another name in {config.file}"
            yield tree.problem(
                *path, message=f"`{name}` calls no server `{server}`", hint=hint, code=Code.FORWARD_NOT_CALLED
            )


def _static_tokens(fleet: ResolvedFleet, name: str, tree: Source) -> Iterator[Problem]:
    """Yield a warning per server outside of the fleet that callers with a static token reach without any token."""
    agent = fleet.agents[name]
    callers = sorted(caller for caller in agent.access.tokens if caller not in fleet.agents)
    for index, server in enumerate(agent.access.forward):
        if callers and not fleet.is_member(server):
            message = (
                f"the token of {', '.join(callers)} is never shown to `{server}`: a static token is for agents only"
            )
            hint = "only a token of an issuer (`jwt`) says that it is for that server; without one it is called bare"
            path = ("agents", name, "access", "forward", index)
            yield tree.problem(*path, message=message, hint=hint, level="warning", code=Code.STATIC_TOKEN_STAYS)


def section(path: tuple[str, ...], access: Access, tree: Source) -> Iterator[Problem]:
    """Yield the problems of one section on its own."""
    if access.jwt and (access.jwt.jwks_url is None) == (access.jwt.jwks_file is None):
        neither = access.jwt.jwks_url is None
        message = "needs `jwks_url` or `jwks_file`" if neither else "has both `jwks_url` and `jwks_file`"
        yield tree.problem(
            *path, "jwt", message=message, hint="one place where the issuer's keys are", code=Code.ISSUER_KEYS
        )
    shared = {file for file, count in Counter(secret.file for secret in access.tokens.values()).items() if count > 1}
    for caller, secret in access.tokens.items():
        if secret.file in shared:
            message = f"{secret.file} is the token of several callers: nobody could tell them apart"
            yield tree.problem(
                *path, "tokens", caller, message=message, hint="give each caller its own", code=Code.SAME_TOKEN
            )


def _agent(fleet: ResolvedFleet, name: str, tree: Source) -> Iterator[Problem]:
    """Yield the problems between the settings of one agent."""
    written = fleet.written.agents[name].access
    agent = fleet.agents[name]
    path = ("agents", name, "access")
    if written.anonymous and (written.tokens or written.jwt):
        yield tree.problem(
            *path,
            "anonymous",
            message="lets everybody in, and there are callers to be checked",
            code=Code.ANONYMOUS_AND_CALLERS,
        )
    if written.forward and not credentials.protected(fleet, name):
        hint = "only a token that was checked goes on: add `tokens` or `jwt`"
        yield tree.problem(
            *path,
            "forward",
            message="there is no token to forward: this agent asks for none",
            hint=hint,
            code=Code.NOTHING_TO_FORWARD,
        )
    if agent.access.jwt and agent.access.jwt.jwks_url and agent.egress is False:
        hint = "name the keys in `jwks_file`, or remove `egress: false`"
        yield tree.problem(
            "agents",
            name,
            "egress",
            message="without it the issuer's keys cannot be fetched",
            hint=hint,
            code=Code.KEYS_OUT_OF_REACH,
        )


def _calls(fleet: ResolvedFleet, name: str, tree: Source) -> Iterator[Problem]:
    """Yield a problem per declared call that would be refused."""
    listed = tree.data["agents"][name].get("depends_on")
    forward = set(fleet.agents[name].access.forward)
    presented = credentials.presented(fleet, name)
    for index, peer in enumerate(fleet.agents[name].depends_on):
        if peer not in fleet.agents or peer == name or not credentials.protected(fleet, peer) or peer in presented:
            continue
        if fleet.is_through(peer):
            continue  # the gateway asks, and its rules say what is missing
        if peer not in forward:
            message = f"`{peer}` asks for a token, and `{name}` has none"
            hint = (
                f"put one under the name `{name}` into agents.{peer}.access.tokens, or `{peer}` into {_FORWARD % name}"
            )
            yield tree.problem(
                "agents",
                name,
                "depends_on",
                index if isinstance(listed, list) else peer,
                message=message,
                hint=hint,
                code=Code.CALL_WITHOUT_TOKEN,
            )
        elif not _same_trust(fleet.agents[name].access, fleet.agents[peer].access):
            message = f"no token that `{name}` takes is one that `{peer}` takes"
            hint = "give both the same issuer, or a caller the same token at both"
            yield tree.problem(
                "agents", name, "access", "forward", message=message, hint=hint, code=Code.NO_SHARED_TRUST
            )


_FORWARD = "agents.%s.access.forward"


def _same_trust(one: AgentAccess, other: AgentAccess) -> bool:
    # One issuer for both, or a caller with the same token at both; the shorter list is walked.
    issuers = [access.jwt.issuer for access in (one, other) if access.jwt]
    fewer, more = sorted((one.tokens, other.tokens), key=len)
    return issuers[1:] == issuers[:1] != [] or any(more.get(caller) == secret for caller, secret in fewer.items())
