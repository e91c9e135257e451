"""From what the replicas of one agent answered to what the fleet is told about it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pallas_contract import names
from pallas_contract.documents.health import State
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint, Sighting


@dataclass(frozen=True, slots=True)
class Verdict:
    """State of an agent and the reason a person is shown; the reason is empty when all is well."""

    state: State
    reason: str = ""


NOT_PROBED = Verdict("unknown", "not probed yet")
_SOME = 3
"""Tools named one by one where replicas differ; a reason is read by people."""


WORST_FIRST: tuple[State, ...] = ("error", "degraded", "unauthenticated", "unknown", "ok")


def together(one: Verdict, other: Verdict) -> Verdict:
    """The worse of two verdicts about the same agent, with the reasons of both that are not well."""
    if one.state == other.state == "ok":
        return Verdict("ok", one.reason or other.reason)
    worse, better = sorted((one, other), key=lambda each: WORST_FIRST.index(each.state))
    reasons = dict.fromkeys(each.reason for each in (worse, better) if each.state != "ok" and each.reason)
    return Verdict(worse.state, "; ".join(reasons))


def judge(agent: str | None, sighting: Sighting, results: Mapping[Endpoint, Result]) -> Verdict | None:
    """One verdict over all replicas; None where there is an address and no answer yet, so nothing new to say.

    `results` holds the last finding of each endpoint probed so far. `agent` is the name it must answer with; None where
    any will do.
    """
    if not sighting.endpoints:
        # a resolver that fails says nothing about the agent; a name that is gone does
        return Verdict("unknown" if sighting.unsure else "error", sighting.problem)
    known = {
        endpoint.label: _identified(agent, results[endpoint]) if agent else results[endpoint]
        for endpoint in sighting.endpoints
        if endpoint in results
    }
    if not known:
        return None
    verdict = _over(known)
    if sighting.missing:
        verdict = together(verdict, Verdict("degraded", sighting.missing))
    reasons = [reason for reason in (verdict.reason, sighting.problem) if reason]
    return Verdict(verdict.state, "; ".join(reasons))


def _identified(agent: str, result: Result) -> Result:
    """An agent that answers under another name may be another agent: DNS can lag behind, a port can be taken."""
    if result.state in ("ok", "degraded") and result.name not in ("", agent, names.slug(agent)):
        return replace(result, state="degraded", reason=f"answers as {result.name}")
    return result


def _over(known: Mapping[str, Result]) -> Verdict:
    """All replicas in the same bad state are that state; some of them, or a difference between them, is degraded."""
    if len(known) == 1:
        (only,) = known.values()
        return Verdict(only.state, only.reason)
    by_state: dict[State, dict[str, str]] = {}
    for label, result in known.items():
        by_state.setdefault(result.state, {})[label] = result.reason
    if len(by_state) == 1 and "ok" not in by_state and "degraded" not in by_state:
        ((state, reasons),) = by_state.items()
        return Verdict(state, _reasons(reasons, len(known)))
    problems = [
        f"{len(reasons)} of {len(known)} replicas: {_reasons(reasons, len(known))}"
        for state, reasons in by_state.items()
        if state not in ("ok", "degraded")
    ]
    problems.append(_reasons(by_state.get("degraded", {}), len(known)))
    problems.append(_skew(known, "version", lambda result: result.version))
    problems.append(_skew(known, "era", lambda result: result.era))
    problems.append(_tool_skew({label: result.tools for label, result in known.items() if result.tools is not None}))
    if "degraded" in by_state or any(problems):
        return Verdict("degraded", "; ".join(filter(None, problems)))
    notes = {label: reason for label, reason in by_state["ok"].items() if reason}
    return Verdict("ok", _reasons(notes, len(known)))


def _reasons(by_label: Mapping[str, str], replicas: int) -> str:
    """Each different reason once; which replica it is about only where there are several."""
    if replicas == 1 or (len(by_label) == replicas and len(set(by_label.values())) == 1):
        return next(iter(by_label.values()), "")
    return "; ".join(f"{', '.join(labels)}: {reason}" for reason, labels in _grouped(by_label.items()))


def _skew(known: Mapping[str, Result], what: str, of: Callable[[Result], str]) -> str:
    """Empty when all replicas that say it say the same."""
    groups = _grouped((label, of(result)) for label, result in known.items() if of(result))
    if len(groups) < 2:
        return ""
    return f"replicas differ in {what}: " + ", ".join(f"{value} ({', '.join(labels)})" for value, labels in groups)


def _tool_skew(known: Mapping[str, Mapping[str, str]]) -> str:
    """Which tool is not the same everywhere, and where it is missing; empty when all replicas have the same."""
    said = []
    for tool in sorted({tool for tools in known.values() for tool in tools}):
        groups = _grouped((label, tools.get(tool, "")) for label, tools in known.items())
        if len(groups) > 1:
            where = next((labels for digest, labels in groups if not digest), None)
            said.append(f"{tool} missing on {', '.join(where)}" if where else f"{tool} takes other arguments")
    if not said:
        return ""
    more = f" and {len(said) - _SOME} more" if len(said) > _SOME else ""
    return f"replicas differ in tools: {'; '.join(said[:_SOME])}{more}"


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for label, value in pairs:
        groups.setdefault(value, []).append(label)
    return sorted(groups.items())
