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
    `depends` maps each agent to the names it depends on and has no cycle (validate.graph_rules).
    """
    condition = conditions[agent]
    if condition.state in _WELL or condition.state == "starting":
        return ()
    blamed = [
        other
        for other in depends.get(agent, ())
        if other in conditions and conditions[other].state not in _WELL and concerns(condition.reason, other)
    ]
    if not blamed:
        return (root_of(agent, condition),)
    # one that is starting is no trouble by itself, only to those who need it
    return tuple(
        sorted(
            {
                root
                for other in blamed
                for root in roots(other, depends, conditions) or (root_of(other, conditions[other]),)
            }
        )
    )


def root_of(agent: str, condition: Condition) -> Root:
    """Return `agent`, in this condition, as a root cause."""
    return Root(agent, replace(condition.reason, message=condition.reason.message or condition.state))


def concerns(reason: Reason, name: str) -> bool:
    """Return whether `reason` is about `name`, be it written as in the file or as a host name."""
    return names.slug(name) in map(names.slug, reason.about)
