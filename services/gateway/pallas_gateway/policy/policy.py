"""The policy of the gateway: grants and what must be confirmed, compiled from agents.yaml into sets at the start.

Deny is the default as soon as one grant is written. Grants add to each other: what one of them allows is allowed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pallas_contract import names
from pallas_contract.documents import health
from pallas_contract.fleet.access_model import Confirm, Gateway, Grant, Route, Who
from pallas_gateway.policy import paths
from pallas_gateway.policy.keys import folded
from pallas_gateway.policy.tools import ALL, Tools
from pallas_service.access.caller import Caller

SEND = "send_message"
_TOOL = re.compile(r"[\x21-\x7E]{1,128}")
"""What can be the name of a tool here (MCP, Tool Names): no spaces and no letters that look like others."""

_SHOWN = 80
"""Characters of a name from outside that are shown."""

PolicyReason = Literal["unknown_agent", "not_granted", "path_not_granted"]
Principal = tuple[Literal["caller", "subject"], str]
"""A verified caller; an issuer may give out any `sub`, that of a static caller too."""
_Confirms = Sequence[tuple[Tools, frozenset[str]]]


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict on one call, of the policy `version`; `reason` and `text` are those of a refusal.

    `field` is the argument that it is about, `by` those who may confirm, as `principal_name` has them.
    """

    verdict: Literal["allowed", "refused", "confirm"]
    version: str
    reason: PolicyReason | None = None
    text: str = ""
    field: str = ""
    by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Rule:
    """Tools of one member, with the folders that its arguments must lie in."""

    tools: Tools
    folders: Mapping[str, Sequence[paths.Parts]]
    whole: bool


class Policy:
    """The decisions that `gateway` asks for; `agents` are the names of those in the file.

    An agent of the file has one tool under two names, `send_message` and its own: what is said of one is said of both.
    """

    def __init__(self, gateway: Gateway, agents: Iterable[str] = ()) -> None:
        self._own_tools = {names.slug(name): name for name in agents if name != health.TOOL}
        self._rules: defaultdict[Principal, defaultdict[str, list[_Rule]]] = defaultdict(lambda: defaultdict(list))
        self._guarded = bool(gateway.grants)
        for grant in gateway.grants:
            rule = _rule(grant)
            for principal in _principals(gateway, grant):
                self._rules[principal][_host(grant)].append(rule)
        self._confirms = _confirms(gateway)
        self._approvers = frozenset(name for rules in self._confirms.values() for _, by in rules for name in by)
        self._operators = frozenset(_names(gateway, gateway.operators))
        self._routes: dict[Principal, str] = {}
        for route in sorted(gateway.routes, key=lambda route: route.tenant is None):
            self._routes |= dict.fromkeys(_principals(gateway, route), names.slug(route.agent))
        self.version = _version(gateway)
        self._allowed = Decision("allowed", self.version)

    @classmethod
    def open(cls) -> Policy:
        """Return the policy of a gateway that has none: everybody may call all."""
        return cls(Gateway(agents=["any"]))

    @property
    def is_guarded(self) -> bool:
        """Return whether there are grants, so that not everybody may call all."""
        return self._guarded

    @property
    def is_routed(self) -> bool:
        """Return whether there are routes."""
        return bool(self._routes)

    def route(self, caller: Caller | None) -> str | None:
        """Return the host name of the agent that a caller is led to; None where no route is about it."""
        return self._routes.get(_principal(caller)) if caller else None

    def knows(self, caller: Caller | None, host: str) -> bool:
        """Return whether a caller may call anything of the agent or service `host`."""
        return not self._guarded or bool(self._of(caller, host))

    def may_all(self, caller: Caller | None, host: str) -> bool:
        """Return whether a caller may use all that `host` offers: prompts and resources too."""
        return not self._guarded or any(rule.whole for rule in self._of(caller, host))

    def may(self, caller: Caller | None, host: str, tool: str) -> bool:
        """Return whether a caller may call `tool` of `host` with some arguments: whether a list shows it."""
        return self.decide(caller, host, tool).verdict != "refused"

    def may_ask(self, caller: Caller | None, host: str) -> bool:
        """Return whether a caller may send messages to the agent `host`."""
        return self.may(caller, host, SEND)

    def decide(
        self, caller: Caller | None, host: str, tool: str, arguments: Mapping[str, Any] | None = None
    ) -> Decision:
        """Return the verdict on a call of `tool` of the agent or service `host` by a verified caller.

        Without `arguments`, where they are not known yet, it is that for some: the call itself is decided with them.
        """
        if not self.knows(caller, host):
            return Decision("refused", self.version, "unknown_agent")
        confirms = self._confirms.get(host, ())
        if (self._guarded or confirms) and not _TOOL.fullmatch(tool):
            return self._not_granted(host, tool)
        if self._guarded and (refusal := self._refusal(caller, host, tool, arguments)):
            return refusal
        return self.decide_granted(caller, host, tool)

    def decide_granted(self, caller: Caller | None, host: str, tool: str) -> Decision:
        """Return the verdict on a call that is granted, by whatever grant: it is allowed, or to be confirmed."""
        aliases = self._aliases(host, tool)
        confirms = self._confirms.get(host, ())
        return self._confirmed(caller, [by for tools, by in confirms if any(name.lower() in tools for name in aliases)])

    def confirms(self, host: str) -> bool:
        """Return whether something of the agent or service `host` must be confirmed."""
        return host in self._confirms

    def is_operator(self, caller: Caller | None) -> bool:
        """Return whether a caller may see what all callers do."""
        return caller is not None and principal_name(caller) in self._operators

    def may_confirm(self, caller: Caller | None) -> bool:
        """Return whether there are calls that a caller may confirm."""
        return caller is not None and principal_name(caller) in self._approvers

    def decide_offered(self, caller: Caller | None, host: str) -> Decision:
        """Return the verdict on what is no tool, to a caller that may use all of `host`: `*` is about that too."""
        return self._confirmed(caller, [by for tools, by in self._confirms.get(host, ()) if tools.are_all])

    def _confirmed(self, caller: Caller | None, approvers: Sequence[frozenset[str]]) -> Decision:
        if not approvers:
            return self._allowed
        # every rule asks for one of its own, and no caller confirms its own call
        by = frozenset.intersection(*approvers) - {principal_name(caller) if caller else ""}
        return Decision("confirm", self.version, by=by)

    def _aliases(self, host: str, tool: str) -> Collection[str]:
        own = self._own_tools.get(host)
        return (SEND, own) if own and tool in (SEND, own) else (tool,)

    def _of(self, caller: Caller | None, host: str) -> Sequence[_Rule]:
        rules = self._rules.get(_principal(caller)) if caller else None
        return rules.get(host, ()) if rules else ()

    def _refusal(
        self, caller: Caller | None, host: str, tool: str, arguments: Mapping[str, Any] | None
    ) -> Decision | None:
        """Return the refusal of a call that no grant allows."""
        aliases = self._aliases(host, tool)
        rules = [rule for rule in self._of(caller, host) if any(name in rule.tools for name in aliases)]
        if not rules:
            return self._not_granted(host, tool)
        if arguments is None:
            return None
        outside = [next(_outside(rule.folders, arguments), None) for rule in rules]
        if (field := outside[0]) is None or None in outside:
            return None
        text = f"the argument `{field}` is not in a folder that is granted"
        return Decision("refused", self.version, "path_not_granted", text, f"arguments.{field}")

    def _not_granted(self, host: str, tool: str) -> Decision:
        text = f"`{tool[:_SHOWN]}` of `{host}` is not granted to this caller"
        return Decision("refused", self.version, "not_granted", text, "name")


def _outside(folders: Mapping[str, Sequence[paths.Parts]], arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments that do not lie in their folders, or are not there."""
    for name, allowed in folders.items():
        meant = folded(name)
        alike = [key for key in arguments if folded(key) == meant]
        if alike != [name] or not paths.lies_in(arguments[name], allowed):
            yield name


def _rule(grant: Grant) -> _Rule:
    folders = {name: [paths.parts(path) for path in written] for name, written in grant.paths.items()}
    return _Rule(Tools(grant.tools), folders, whole=ALL in grant.tools and not folders)


def _host(rule: Grant | Confirm) -> str:
    return names.slug(rule.agent or rule.service or "")


def principal_name(caller: Caller) -> str:
    """Return what a verified caller is called beside others; the name of a static one has no space."""
    return _named(_principal(caller))


def _named(principal: Principal) -> str:
    kind, name = principal
    return name if kind == "caller" else f"{kind} {name}"


def _names(gateway: Gateway, written: Iterable[str | Who]) -> Iterator[str]:
    for who in written:
        yield from [who] if isinstance(who, str) else map(_named, _principals(gateway, who))


def _confirms(gateway: Gateway) -> Mapping[str, _Confirms]:
    """Return what must be confirmed, and by whom, by host name."""
    rules: defaultdict[str, list[tuple[Tools, frozenset[str]]]] = defaultdict(list)
    for confirm in gateway.confirm:
        # in lower case: a server may take a tool's name in any
        tools = Tools([name.lower() for name in confirm.tools])
        rules[_host(confirm)].append((tools, frozenset(_names(gateway, confirm.by))))
    return dict(rules)


def _principal(caller: Caller) -> Principal:
    return ("caller" if caller.issuer is None else "subject", caller.name)


def _principals(gateway: Gateway, rule: Grant | Route | Who) -> Iterator[Principal]:
    if rule.caller is not None:
        yield "caller", rule.caller
    if rule.subject is not None:
        yield "subject", rule.subject
    if rule.tenant is not None and (tenant := gateway.tenants.get(rule.tenant)):
        yield from (("caller", name) for name in tenant.callers)
        yield from (("subject", name) for name in tenant.subjects)


def _version(gateway: Gateway) -> str:
    """Return a digest of all that decides: what was confirmed under another policy is confirmed no more."""
    keys = {"grants", "confirm", "routes"}
    policy = gateway.model_dump(mode="json", include=keys)
    policy["tenants"] = {name: [tenant.callers, tenant.subjects] for name, tenant in gateway.tenants.items()}
    return hashlib.sha256(json.dumps(policy, sort_keys=True).encode()).hexdigest()
