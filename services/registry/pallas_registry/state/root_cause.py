"""Root causes: where the trouble of an agent starts, followed along `depends_on`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pallas_contract import names
from pallas_contract.documents.reason import Reason
from pallas_registry.state.status import Condition

_WELL = frozenset({"ok", "unknown"})


@dataclass(frozen=True, slots=True, order=True)
class Root:
    """An agent where trouble starts, and the reason for its state."""

    agent: str
    reason: Reason


def roots(agent: str, depends: Mapping[str, Collection[str]], conditions: Mapping[str, Condition]) -> tuple[Root, ...]:
    """Return the root causes of the state of `agent`, itself if no other is to blame; none when it is well.

    Another agent is blamed only when it is unwell *and* the reason is about it: that both are unwell proves nothing.
    `depends` maps each agent to the names it depends on. It may have circles, of soft edges: where those in one blame
    only each other, each of them is its own root cause.
    """
    if not _troubled(conditions[agent]):
        return ()
    # each agent once, however many ways lead to it: in a fleet where everybody blames everybody there are very many
    visited = {agent}
    ahead = [agent]
    causes: set[Root] = set()
    while ahead:
        name = ahead.pop()
        blamed = _blamed(name, depends, conditions)
        if not blamed:
            causes.add(root_of(name, conditions[name]))
        ahead += [other for other in blamed if other not in visited]
        visited.update(blamed)
    return tuple(sorted(causes)) or (root_of(agent, conditions[agent]),)


def _troubled(condition: Condition) -> bool:
    # one that is starting is no trouble by itself, only to those who need it
    return condition.state not in _WELL and condition.state != "starting"


def _blamed(agent: str, depends: Mapping[str, Collection[str]], conditions: Mapping[str, Condition]) -> list[str]:
    condition = conditions[agent]
    if not _troubled(condition):
        return []
    return [
        other
        for other in depends.get(agent, ())
        if other in conditions and conditions[other].state not in _WELL and concerns(condition.reason, other)
    ]


def root_of(agent: str, condition: Condition) -> Root:
    """Return `agent`, in this condition, as a root cause."""
    return Root(agent, replace(condition.reason, message=condition.reason.message or condition.state))


def concerns(reason: Reason, name: str) -> bool:
    """Return whether `reason` is about `name`, be it written as in the file or as a host name."""
    return names.slug(name) in map(names.slug, reason.about)
