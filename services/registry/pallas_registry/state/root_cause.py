"""Why an agent is not well: followed along `depends_on` to where the trouble starts. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pallas_contract import names
from pallas_registry.state.status import Verdict

_WELL = frozenset({"ok", "unknown"})


@dataclass(frozen=True, slots=True, order=True)
class Root:
    """Where trouble starts: an agent, and what it says or what was found."""

    agent: str
    reason: str


def roots(agent: str, depends: Mapping[str, Collection[str]], verdicts: Mapping[str, Verdict]) -> tuple[Root, ...]:
    """The root causes of the state of `agent`, itself if nothing it depends on is to blame; none when it is well.

    Another agent is blamed only when it is unwell *and* the reason names it: that both are unwell proves nothing.
    `depends` maps each agent to the names it depends on and has no cycle (contract.graph).
    """
    verdict = verdicts[agent]
    if verdict.state in _WELL:
        return ()
    blamed = [
        other
        for other in depends.get(agent, ())
        if other in verdicts and verdicts[other].state not in _WELL and mentions(verdict.reason, other)
    ]
    if not blamed:
        return (Root(agent, verdict.reason or verdict.state),)
    return tuple(sorted({root for other in blamed for root in roots(other, depends, verdicts)}))


def mentions(reason: str, name: str) -> bool:
    """Whether `reason` names `name`, as it is written in the file or as a host name; parts of words do not count."""
    spellings = "|".join(re.escape(spelling) for spelling in {name, names.slug(name)})
    return re.search(rf"(?<![\w-])(?:{spellings})(?![\w-])", reason) is not None
