"""Facts of two fleets -> the changes between them: for whom, and whether these have to do something. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Literal

from pallas_gen.comparison.facts import Facts, Value, callers_part

Effect = Literal["breaking", "additive", "cosmetic"]
Whom = Literal["callers", "operators"]
What = Literal["new", "gone", "changed"]
EFFECTS: tuple[Effect, ...] = ("breaking", "additive", "cosmetic")
"""Somebody has to do something or loses something; there is something more; nobody has to do anything."""
_WORDS = {"breaking": "has to be reacted to", "additive": "is more than before", "cosmetic": "asks nothing of anybody"}


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One difference; `before` and `after` are empty where there is nothing, or it is not to be shown."""

    effect: Effect
    whom: Whom
    key: str
    what: What
    before: str = ""
    after: str = ""


_Judge = Callable[[Value, Value], Effect]


def _always(effect: Effect) -> _Judge:
    return lambda before, after: effect


def _presence(before: Value, after: Value) -> Effect:
    """Judge what is there: more of it is additive; less, and another one, break."""
    return "additive" if before in (None, "", False) else "breaking"


def _demand(before: Value, after: Value) -> Effect:
    """Judge a demand: one that goes away is additive; a new or another one breaks."""
    return "additive" if after in (None, "", False) else "breaking"


def _limit(before: Value, after: Value) -> Effect:
    """Judge a limit: a higher one is additive, as is none."""
    former, limit = (
        float(match[0]) if (match := re.match(r"[0-9.]+", str(value))) else inf for value in (before, after)
    )
    return "breaking" if limit < former else "additive"


def _service(before: Value, after: Value) -> Effect:
    """Judge a service: callers see none, so one that goes asks nothing of anybody."""
    return "additive" if after else "cosmetic"


def _scope(before: Value, after: Value) -> Effect:
    """Judge `instance_scope`: with `request` conversations end with the call."""
    return "breaking" if after == "request" else "additive"


_TABLE: Sequence[tuple[str, Whom, _Judge]] = (
    (r"agents\.[^.]+", "callers", _presence),
    # digests of agents.lock
    (r"agents\.[^.]+\.tools", "callers", _always("cosmetic")),
    (r"agents\.[^.]+\.tools\.[^.]+", "callers", _presence),
    (r"agents\.[^.]+\.tools\.[^.]+\.(input|output)", "callers", _always("breaking")),
    (r"agents\.[^.]+\.tools\.[^.]+\.annotations", "callers", _always("cosmetic")),
    (r"agents\.[^.]+\.(url|registry_name)", "callers", _presence),
    (r"(agents\.[^.]+|gateway|registry)\.publish", "callers", _presence),
    (r"agents\.[^.]+\.(title|description|icons)|version", "callers", _always("cosmetic")),
    (r"agents\.[^.]+\.instance_scope", "callers", _scope),
    (r"agents\.[^.]+\.keep_conversations", "callers", _presence),
    (r"(agents\.[^.]+|gateway)\.access\.(protected|jwt)", "callers", _demand),
    (r"(agents\.[^.]+|gateway)\.access\.jwt\..+", "callers", _always("breaking")),
    (r"(agents\.[^.]+|gateway)\.access\.tokens\.[^.]+", "callers", _presence),
    (r"agents\.[^.]+\.(access\.anonymous|functions\.[^.]+)", "callers", _presence),
    (r"(gateway|registry)\.url|gateway(\.(agents|tools|registered)\.[^.]+)?", "callers", _presence),
    # a new one brings limits, and without theirs verified callers are refused
    (r"gateway\.tenants\.[^.]+(\.(callers|subjects)\..+)?", "callers", _always("breaking")),
    (r"gateway\.(routes|grants|confirm)", "callers", _always("breaking")),
    (r"gateway\.timeout|gateway\.tenants\.[^.]+\.(requests|concurrent|timeout)", "callers", _limit),
    (r"registry\.registration(\.tokens\.[^.]+|\.reach\..+)?", "callers", _presence),
    # a name in one token's list is lost to all others
    (r"registry\.registration\.tokens\.[^.]+\.agents\..+", "callers", _always("breaking")),
    (r"registry\.registration\.max_agents", "callers", _limit),
    (r"name", "operators", _always("breaking")),
    # an id is then good for one graph, and a graph goes on without its caller
    (r"gateway\.tasks(\.durable)?", "callers", _always("breaking")),
    # it needs a secret file and a volume
    (r"gateway\.audit(\.key\.file)?", "operators", _demand),
    (r".+\.secrets\.[^.]+(\.file)?|.+\.tokens\.[^.]+\.file", "operators", _demand),
    (r"services\.[^.]+", "operators", _service),
    # without it, what the service has kept is gone at the next restart
    (r"services\.[^.]+\.state", "operators", _presence),
)
"""Key, whom it concerns, and how: the first that fits. All other keys are cosmetic, for operators."""
_RULES = [(re.compile(pattern), whom, judge) for pattern, whom, judge in _TABLE]
_SHOWN = re.compile(
    r"name|version|(agents\.[^.]+|gateway|registry)\.(url|port|publish)|networks\.(mode|pool)|image\.code"
    r"|(agents|services)\.[^.]+\.(registry_name|title|instance_scope|replicas|module|card|image|port)"
    r"|(agents|services|gateway|registry)(\.[^.]+)?\.resources\.(memory|cpus)|.+\.(secrets|tokens)\.[^.]+\.file"
    r"|((agents|services)\.[^.]+|registry|gateway)\.image_digest"
    r"|gateway\.timeout|gateway\.tenants\.[^.]+\.(requests|concurrent|timeout)|registry\.registration\.max_agents"
)
"""Keys whose values are shown: none of them can be a secret. Variables and labels may have any name, and none fits."""


def between(old: Facts, new: Facts) -> list[Change]:
    """Return the changes from `old` to `new`, sorted: what breaks first. Of a registry only what callers see."""
    if not (old.whole and new.whole):
        old, new = (facts if not facts.whole else callers_part(facts) for facts in (old, new))
    return sorted(_changes(old, new), key=lambda change: (EFFECTS.index(change.effect), change.whom, change.key))


def _changes(old: Facts, new: Facts) -> Iterator[Change]:
    keys = old.values.keys() | new.values.keys()
    different = {key for key in keys if old.values.get(key) != new.values.get(key)}
    for key in different:
        before, after = old.values.get(key), new.values.get(key)
        # a port that is part of a URL is no second change
        if key.endswith(".port") and f"{key.removesuffix('port')}url" in different:
            continue
        # a section that came or went says it for all that is in it
        above = [key[: match.start()] for match in re.finditer(r"\.", key)]
        if any(_one_sided(section, old, new) for section in above):
            continue
        whom, judge = _rule(key)
        what: What = "new" if before in (None, "", False) else "gone" if after in (None, "", False) else "changed"
        values = [_text(value) if is_shown(key) else "" for value in (before, after)]
        yield Change(judge(before, after), whom, key, what, *values)


def is_shown(key: str) -> bool:
    """Return whether the value of a key can be no secret."""
    return _SHOWN.fullmatch(key) is not None


def _rule(key: str) -> tuple[Whom, _Judge]:
    for pattern, whom, judge in _RULES:
        if pattern.fullmatch(key):
            return whom, judge
    return "operators", _always("cosmetic")


def _one_sided(section: str, old: Facts, new: Facts) -> bool:
    return old.values.get(section) != new.values.get(section)


def _text(value: Value) -> str:
    return "" if value is None or isinstance(value, bool) else str(value)


def text(changes: Sequence[Change]) -> str:
    """Return the changes in words, under their effects."""
    lines = []
    width = max((len(change.key) for change in changes), default=0)
    for effect in EFFECTS:
        group = [change for change in changes if change.effect == effect]
        if group:
            lines.append(f"{effect}: {_WORDS[effect]}")
        lines += [f"  {change.whom:<9}  {change.key:<{width}}  {_words(change)}" for change in group]
    return "".join(f"{line}\n" for line in lines) or "no difference\n"


def _words(change: Change) -> str:
    if change.before and change.after:
        return f"{change.before} -> {change.after}"
    verb = {"new": "is new", "gone": "is gone", "changed": "has changed"}[change.what]
    value = change.after or change.before
    return f"{verb}: {value}" if value else verb


def document(changes: Sequence[Change]) -> dict[str, object]:
    """Return the same for programs: a count per effect, and the changes."""
    counts: dict[str, object] = {effect: sum(change.effect == effect for change in changes) for effect in EFFECTS}
    entries = [{key: value for key, value in asdict(change).items() if value} for change in changes]
    return {**counts, "changes": entries}
