"""The condition of an agent, from the answers of its replicas. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pallas_contract import names
from pallas_contract.documents.health import State
from pallas_contract.documents.reason import OK, Code, Reason, joined
from pallas_contract.documents.tool_contract import ToolContract
from pallas_contract.probe.probe import Result
from pallas_registry.discovery.sighting import Endpoint, Sighting
from pallas_registry.state import drift
from pallas_registry.state.drift import Expected


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of an agent and the reason for it, as in Kubernetes; its message is empty when all is well."""

    state: State
    reason: Reason = OK


NOT_PROBED = Condition("unknown", Reason("NotProbedYet", "not probed yet"))
_ABSENT: frozenset[Code] = frozenset(
    ("NameNotFound", "ConnectionRefused", "ConnectionReset", "ConnectionFailed", "NoAnswer")
)
"""Findings about an agent that are to be expected before it is up."""
_SOME = 3
"""Tools named one by one where replicas differ; a reason is read by people."""


WORST_FIRST: tuple[State, ...] = ("error", "degraded", "unauthenticated", "starting", "unknown", "ok")


def together(one: Condition, other: Condition) -> Condition:
    """Return the worse of two conditions of the same agent, with the reasons of both that are not well."""
    if one.state == other.state == "ok":
        return Condition("ok", one.reason if one.reason.message else other.reason)
    worse, better = sorted((one, other), key=lambda condition: WORST_FIRST.index(condition.state))
    return Condition(worse.state, joined(condition.reason for condition in (worse, better) if condition.state != "ok"))


def is_absent(condition: Condition) -> bool:
    """Return whether nobody was found."""
    return condition.state == "error" and condition.reason.code in _ABSENT


def not_up_yet(condition: Condition) -> Condition:
    """Return the condition of an agent that has never answered, and still has time to start."""
    if not is_absent(condition):
        return condition
    reason = condition.reason
    return Condition("starting", Reason("Starting", f"not up yet: {reason.message}", reason.about))


def judge(
    agent: str | None, sighting: Sighting, results: Mapping[Endpoint, Result], expected: Expected | None = None
) -> Condition | None:
    """Return one condition over all replicas; None where there is an address and no answer yet, so nothing new to say.

    `results` holds the last finding of each endpoint probed so far. `agent` is the name it must answer with; None where
    any will do. `expected` is the lock's word about it, None where there is no lock.
    """
    if not sighting.endpoints:
        # a resolver that fails says nothing about the agent; a name that is gone does
        return Condition("unknown" if sighting.unsure else "error", sighting.problem)
    answers = {
        endpoint.label: drift.marked(_identified(agent, results[endpoint]) if agent else results[endpoint], expected)
        for endpoint in sighting.endpoints
        if endpoint in results
    }
    if not answers:
        return _absent(sighting.absence) if sighting.absence.message else None
    condition = _over(answers)
    if sighting.absence.message and is_absent(condition):
        return _absent(sighting.absence)
    if sighting.missing.message:
        condition = together(condition, Condition("degraded", sighting.missing))
    return Condition(condition.state, joined((condition.reason, sighting.problem)))


def _absent(reason: Reason) -> Condition:
    """Return the condition of an agent that is not up, by the word of its supervisor."""
    return Condition("starting" if reason.code == "Starting" else "error", reason)


def _identified(agent: str, result: Result) -> Result:
    """Return the result as degraded under another name: DNS can lag behind, a port can be taken."""
    if result.state in ("ok", "degraded") and result.name not in ("", agent, names.slug(agent)):
        return replace(result, state="degraded", reason=Reason("NameMismatch", f"answers as {result.name}"))
    return result


def _over(results: Mapping[str, Result]) -> Condition:
    """Return the state that all replicas share; some in a bad one, or a difference between them, is degraded."""
    if len(results) == 1:
        (only,) = results.values()
        return Condition(only.state, only.reason)
    by_state: dict[State, dict[str, Reason]] = {}
    for label, result in results.items():
        by_state.setdefault(result.state, {})[label] = result.reason
    if len(by_state) == 1 and "ok" not in by_state and "degraded" not in by_state:
        ((state, reasons),) = by_state.items()
        return Condition(state, _by_replica(reasons, len(results)))
    problems = [
        _unavailable(reasons, len(results)) for state, reasons in by_state.items() if state not in ("ok", "degraded")
    ]
    problems.append(_by_replica(by_state.get("degraded", {}), len(results)))
    problems.append(_skew("version", {label: result.version for label, result in results.items()}))
    problems.append(_skew("era", {label: result.era for label, result in results.items()}))
    problems.append(_tool_skew({label: result.tools for label, result in results.items() if result.tools is not None}))
    if "degraded" in by_state or any(problem.message for problem in problems):
        return Condition("degraded", joined(problems))
    notes = {label: reason for label, reason in by_state["ok"].items() if reason.message}
    return Condition("ok", _by_replica(notes, len(results)))


def _unavailable(reasons: Mapping[str, Reason], replicas: int) -> Reason:
    reason = _by_replica(reasons, replicas)
    message = f"{len(reasons)} of {replicas} replicas: {reason.message}"
    return Reason("ReplicaUnavailable", message, reason.about)


def _by_replica(reasons: Mapping[str, Reason], replicas: int) -> Reason:
    """Return each different reason once, with the replicas it is about unless it is all of them."""
    if not reasons:
        return OK
    first = next(iter(reasons.values()))
    if len(reasons) == replicas and len({reason.message for reason in reasons.values()}) == 1:
        return first
    groups = _grouped({label: reason.message for label, reason in reasons.items()})
    return joined(
        Reason(
            reasons[labels[0]].code,
            f"{', '.join(labels)}: {message}",
            (*labels, *(name for label in labels for name in reasons[label].about)),
        )
        for message, labels in groups
    )


def _skew(what: str, values: Mapping[str, str]) -> Reason:
    """Return no problem when all replicas that tell the value tell the same; `values` maps replica -> value."""
    groups = _grouped({label: value for label, value in values.items() if value})
    if len(groups) < 2:
        return OK
    differences = ", ".join(f"{value} ({', '.join(labels)})" for value, labels in groups)
    about = tuple(label for _, labels in groups for label in labels)
    return Reason("ReplicasDiffer", f"replicas differ in {what}: {differences}", about)


def _tool_skew(tools: Mapping[str, Mapping[str, ToolContract]]) -> Reason:
    """Return the tools that are not the same everywhere, and where one is missing.

    `tools` maps replica -> tool -> contract. The reason is about the replicas: a tool may have the name of an agent.
    """
    differences = []
    about: dict[str, None] = {}
    for tool in sorted({tool for offered in tools.values() for tool in offered}):
        groups = _grouped({label: offered[tool].input if tool in offered else "" for label, offered in tools.items()})
        if len(groups) > 1:
            without = next((labels for digest, labels in groups if not digest), [])
            differences.append(
                f"{tool} missing on {', '.join(without)}" if without else f"{tool} takes other arguments"
            )
            about |= dict.fromkeys(without or tools)
    if not differences:
        return OK
    more = f" and {len(differences) - _SOME} more" if len(differences) > _SOME else ""
    return Reason("ReplicasDiffer", f"replicas differ in tools: {'; '.join(differences[:_SOME])}{more}", tuple(about))


def _grouped(values: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Return the replicas of each value, by value; `values` maps replica -> value."""
    groups: dict[str, list[str]] = {}
    for label, value in values.items():
        groups.setdefault(value, []).append(label)
    return sorted(groups.items())
