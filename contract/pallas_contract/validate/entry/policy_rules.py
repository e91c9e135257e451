"""Rules for the policy of the gateway, `routes`, `grants` and `confirm`: whom and what they name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pallas_contract.codes import Code
from pallas_contract.documents import health
from pallas_contract.fleet.access_model import Confirm, Gateway, Grant, Route, Who
from pallas_contract.fleet.resolved import ResolvedFleet
from pallas_contract.fleet.source import Source
from pallas_contract.problems import Problem
from pallas_contract.validate.suggestions import Suggestions

_AT = "gateway"
_Path = tuple[str | int, ...]
_OF_USERS = ("ask_agent", "list_agents")
"""Tools of the service that has `create_agent` (docs/gateway.md, Agents of users)."""
_SEND = "send_message"


def problems(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per rule about the policy that `gateway` breaks."""
    rules = _Rules(fleet, gateway, tree)
    sections: dict[str, Sequence[Route | Grant | Confirm]] = {
        "routes": gateway.routes,
        "grants": gateway.grants,
        "confirm": gateway.confirm,
    }
    for section, entries in sections.items():
        if entries and not (gateway.access.tokens or gateway.access.jwt):
            message = "is about verified callers, and the gateway asks for no token"
            hint = "add `access` with `tokens` or `jwt`"
            yield tree.problem(_AT, section, message=message, hint=hint, code=Code.POLICY_WITHOUT_ACCESS)
            continue
        for index, entry in enumerate(entries):
            path: _Path = (_AT, section, index)
            if isinstance(entry, Confirm):
                yield from rules.those((*path, "by"), entry.by)
            else:
                yield from rules.caller(path, entry)
            yield from rules.member(path, entry)
            if not isinstance(entry, Route):
                yield from rules.tools(path, entry)
    yield from rules.those((_AT, "operators"), gateway.operators)
    yield from rules.no_approver()
    yield from _routes(gateway, tree)
    yield from _edges(fleet, gateway, tree)


class _Rules:
    """The rules that several sections share."""

    def __init__(self, fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> None:
        self._fleet = fleet
        self._gateway = gateway
        self._tree = tree
        self._suggestions = Suggestions()

    def caller(self, path: _Path, entry: Route | Grant | Who) -> Iterator[Problem]:
        written = [key for key in ("caller", "subject", "tenant") if getattr(entry, key) is not None]
        if len(written) != 1:
            yield self._tree.problem(
                *path,
                message=f"needs one of `caller`, `subject` and `tenant`, and has {' and '.join(written) or 'none'}",
                hint="one entry is about one caller, or about all of one tenant",
                code=Code.POLICY_ENTRY,
            )
            return
        access = self._gateway.access
        if entry.caller is not None and entry.caller not in access.tokens:
            yield self._unknown((*path, "caller"), "token for a caller", entry.caller, sorted(access.tokens))
        if entry.tenant is not None and entry.tenant not in self._gateway.tenants:
            yield self._unknown((*path, "tenant"), "tenant", entry.tenant, sorted(self._gateway.tenants))
        if entry.subject is not None and access.jwt is None:
            message = "nobody has a `sub`: the gateway takes no JWT"
            hint = "add `jwt` to `access`, or name a `caller`"
            yield self._tree.problem(*path, "subject", message=message, hint=hint, code=Code.POLICY_CALLER)

    def those(self, path: _Path, written: Sequence[str | Who]) -> Iterator[Problem]:
        tokens = sorted(self._gateway.access.tokens)
        for index, who in enumerate(written):
            place = (*path, index)
            if not isinstance(who, str):
                yield from self.caller(place, who)
            elif who not in tokens:
                yield self._unknown(place, "token for a caller", who, tokens)

    def member(self, path: _Path, entry: Route | Grant | Confirm) -> Iterator[Problem]:
        service = None if isinstance(entry, Route) else entry.service
        behind = (*self._fleet.behind_gateway, *self._gateway.registered)
        agents = self._gateway.agents if isinstance(entry, Route) else behind
        if (entry.agent is None) == (service is None):
            yield self._tree.problem(
                *path,
                message=f"needs either `agent` or `service`, and has {'neither' if entry.agent is None else 'both'}",
                hint="one entry is about one of them",
                code=Code.POLICY_ENTRY,
            )
        elif entry.agent is not None and entry.agent not in agents:
            hint = self._suggestions.hint(entry.agent, agents)
            if entry.agent in self._fleet.agents:
                hint = "add it to `agents` of the gateway"
            message = f"the gateway leads to no agent `{entry.agent}`"
            yield self._tree.problem(*path, "agent", message=message, hint=hint, code=Code.POLICY_MEMBER)
        elif service is not None and service not in self._services():
            hint = self._suggestions.hint(service, self._services(), "it calls")
            if not self._services():
                hint = "add it to `tools` of the gateway, or give it `through: gateway`"
            message = f"the gateway calls no service `{service}`"
            yield self._tree.problem(*path, "service", message=message, hint=hint, code=Code.POLICY_MEMBER)
        elif isinstance(entry, Grant):
            yield from self._way(path, entry, entry.agent or service or "")

    def _way(self, path: _Path, grant: Grant, name: str) -> Iterator[Problem]:
        """Yield a problem where a grant is for a caller that does not depend on what only agents reach."""
        open_ = (*self._gateway.agents, *self._gateway.services, *self._gateway.tools.values())
        if not self._fleet.is_through(name) or name in open_:
            return
        agent = self._fleet.agents.get(grant.caller or "")
        if agent is None or name not in agent.depends_on:
            message = f"`{name}` is reached through the gateway by agents that depend on it, and by nobody else"
            hint = "name such an agent as `caller`"
            if name in self._fleet.services:
                hint += ", or the service in `gateway.services`"
            yield self._tree.problem(*path, message=message, hint=hint, code=Code.POLICY_MEMBER)

    def tools(self, path: _Path, entry: Grant | Confirm) -> Iterator[Problem]:
        known = self._tools(entry)
        for index, tool in enumerate(entry.tools):
            if known and "*" not in tool and tool not in known:
                message = f"`{entry.agent or entry.service}` has no tool `{tool}` here"
                hint = self._suggestions.hint(tool, known)
                yield self._tree.problem(*path, "tools", index, message=message, hint=hint, code=Code.POLICY_TOOL)

    def no_approver(self) -> Iterator[Problem]:
        """Yield a problem per entry of `confirm` that leaves nobody to confirm a tool of earlier ones too."""
        for index, entry in enumerate(self._gateway.confirm):
            of_member = [
                other
                for other in self._gateway.confirm[:index]
                if (other.agent, other.service) == (entry.agent, entry.service)
            ]
            names = {*self._tools(entry), *entry.tools, *(tool for other in of_member for tool in other.tools)}
            for name in sorted(names, key=lambda name: ("*" in name, name)):
                others = [_approvers(self._gateway, other) for other in of_member if _is_about(other, name)]
                left = set.intersection(*others) if others else set()
                if left and _is_about(entry, name) and not left & _approvers(self._gateway, entry):
                    message = f"nobody may confirm `{name}`: no caller is in `by` of all entries that are about it"
                    hint = f"earlier ones leave {', '.join(sorted(name for _, name in left))}: name one of them here"
                    yield self._tree.problem(
                        _AT, "confirm", index, "by", message=message, hint=hint, code=Code.NO_APPROVER
                    )
                    break

    def _tools(self, entry: Grant | Confirm) -> list[str]:
        """Return the tools that the gateway can call there; none where that is not known."""
        if entry.agent is not None:
            agent = self._fleet.agents.get(entry.agent)
            return sorted({_SEND, entry.agent, health.TOOL, *agent.functions}) if agent else []
        if self._fleet.is_through(entry.service or ""):
            return []
        tools = {str(tool) for tool, service in self._gateway.tools.items() if service == entry.service}
        return sorted(tools | set(_OF_USERS if "create_agent" in tools else ()))

    def _services(self) -> list[str]:
        through = [name for name in self._fleet.through if name in self._fleet.services]
        return sorted({*self._gateway.tools.values(), *through})

    def _unknown(self, path: _Path, what: str, name: str, known: Sequence[str]) -> Problem:
        hint = self._suggestions.hint(name, known) if known else "name a `caller`, or add one"
        return self._tree.problem(*path, message=f"there is no {what} `{name}`", hint=hint, code=Code.POLICY_CALLER)


def _is_about(entry: Confirm, tool: str) -> bool:
    """Return whether an entry is about a tool; that of an agent has two names, and a server may take any case."""
    aliases = {_SEND, entry.agent} if entry.agent is not None and tool in (_SEND, entry.agent) else {tool}
    patterns = [".*".join(map(re.escape, written.lower().split("*"))) for written in entry.tools]
    return any(re.fullmatch(pattern, name.lower()) for pattern in patterns for name in aliases)


def _routes(gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per route that is not the only one of its caller, or leads where nothing is granted."""
    taken: dict[tuple[str, str], int] = {}
    for index, route in enumerate(gateway.routes):
        for key in ("caller", "subject", "tenant"):
            name = getattr(route, key)
            if name is not None and taken.setdefault((key, name), index) != index:
                message = f"`{name}` has a route already"
                hint = "a caller is led to one agent"
                yield tree.problem(_AT, "routes", index, key, message=message, hint=hint, code=Code.TWO_ROUTES)
        callers = _callers(gateway, route)
        if not gateway.grants or not callers or route.agent not in gateway.agents:
            continue
        if not any(grant.agent == route.agent and callers & _callers(gateway, grant) for grant in gateway.grants):
            message = f"leads to `{route.agent}`, of which nothing is granted to this caller"
            hint = "add a grant for it, or remove the route"
            yield tree.problem(_AT, "routes", index, message=message, hint=hint, code=Code.NOT_GRANTED)


def _edges(fleet: ResolvedFleet, gateway: Gateway, tree: Source) -> Iterator[Problem]:
    """Yield a problem per call of an agent through the gateway of which nothing is granted."""
    for name, agent in fleet.agents.items() if gateway.grants else ():
        for index, peer in enumerate(agent.depends_on):
            granted = [grant for grant in gateway.grants if peer in (grant.agent, grant.service)]
            if fleet.is_through(peer) and not any(("caller", name) in _callers(gateway, grant) for grant in granted):
                written = tree.data["agents"][name].get("depends_on")
                message = f"`{peer}` is called through the gateway, where nothing of it is granted to `{name}`"
                hint = f"add a grant with `caller: {name}`"
                place = index if isinstance(written, list) else peer
                path = ("agents", name, "depends_on", place)
                yield tree.problem(*path, message=message, hint=hint, code=Code.NOT_GRANTED)


def _approvers(gateway: Gateway, entry: Confirm) -> set[tuple[str, str]]:
    """Return those who may confirm by an entry, as it names them."""
    known = {("caller", who) for who in entry.by if isinstance(who, str)}
    return known.union(*(_callers(gateway, who) for who in entry.by if not isinstance(who, str)))


def _callers(gateway: Gateway, entry: Grant | Route | Who) -> set[tuple[str, str]]:
    """Return the callers that an entry is about, as far as they are there."""
    tenant = gateway.tenants.get(entry.tenant or "")
    callers = {("caller", name) for name in (entry.caller, *(tenant.callers if tenant else ()))}
    subjects = {("subject", name) for name in (entry.subject, *(tenant.subjects if tenant else ())) if name}
    return subjects | {(kind, name) for kind, name in callers if name in gateway.access.tokens}
