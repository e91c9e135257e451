"""How a program differs from the plan, in words for a log: names of variables, and never what they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from pallas_contract.validate import masking
from pallas_gen.targets.observed import ObservedWorkload


def changes(actual: ObservedWorkload, planned: ObservedWorkload) -> Iterator[tuple[str, str]]:
    """Yield the name of each field that differs, and how."""
    for name in (entry.name for entry in fields(ObservedWorkload)):
        value, wanted = getattr(actual, name), getattr(planned, name)
        if value != wanted:
            yield name, _WORDS.get(name, _text)(value, wanted)


def instead(value: str, wanted: str) -> str:
    """Return that there is `value` where the plan has `wanted`."""
    if value == wanted:  # what is hidden makes the difference
        return "is not that of the plan"
    return f"is {value or 'empty'}, and {wanted or 'empty'} in the plan"


def commands(value: Sequence[str], wanted: Sequence[str], nothing: str = "that of the image") -> str:
    """Return how a command line differs, without the secrets that it seems to have."""
    return instead(masking.command_line(value) or nothing, masking.command_line(wanted) or nothing)


def entries(value: Collection[str], wanted: Collection[str], another: Collection[str] = ()) -> str:
    """Return what there is too much and too little; `another` are names under which something else stands."""
    parts = {
        "has": set(value) - set(wanted),
        "lacks": set(wanted) - set(value),
        "has another value of": set(another),
    }
    told = [f"{verb} {', '.join(sorted(names))}" for verb, names in parts.items() if names]
    return f"{' and '.join(told)}, unlike the plan" if told else ""


def _variables(value: Iterable[tuple[str, str]], wanted: Iterable[tuple[str, str]]) -> str:
    held, meant = dict(value), dict(wanted)
    return entries(held, meant, [name for name in held.keys() & meant.keys() if held[name] != meant[name]])


def _limits(value: tuple[float, int], wanted: tuple[float, int]) -> str:
    shown = [(f"{cpus:g}", f"{memory} MiB") for cpus, memory in (value, wanted)]
    pairs = zip(("cpus", "memory"), *shown, strict=True)
    return " and ".join(f"{key} {instead(*both)}" for key, *both in pairs if both[0] != both[1])


def _entries(value: Collection[str], wanted: Collection[str]) -> str:
    return entries(value, wanted) or "has an entry twice, unlike the plan"


def _text(value: object, wanted: object) -> str:
    return instead(masking.masked(str(value)), masking.masked(str(wanted)))


_WORDS: Mapping[str, Callable[[Any, Any], str]] = {
    "image": instead,
    "command": commands,
    "env": _variables,
    "limits": _limits,
    **dict.fromkeys(("order", "secrets", "peers", "keeps", "callers"), _entries),
}
