"""Components -> whether their licences allow what a release does with them; what nobody stated fails.

`requirements/licences.toml` has the list: `allowed` SPDX identifiers, and under `stated` the packages whose metadata
does not say its licence as SPDX does, each with where it is stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pallas_gen.images.inventory import Component, normalised

from . import toml_file

FILE = "requirements/licences.toml"
_REFUSED_SECTIONS = ("non-free", "contrib", "non-free-firmware", "multiverse", "restricted")


@dataclass(frozen=True, slots=True)
class Policy:
    """Licences that a release may carry."""

    allowed: frozenset[str]
    stated: dict[str, str]
    """By normalised name: the SPDX expression of a package whose metadata has none."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read it from the file.

        Raises:
            ValueError: it cannot be read as one; a line for each reason, with the number of its line and what to write.
            OSError: there is none.
        """
        text = path.read_text("utf-8")
        document = toml_file.read(FILE, text)
        if problems := list(_unreadable(text, document)):
            raise ValueError("\n".join(problems))
        stated = {normalised(name): entry["licence"] for name, entry in document.get("stated", {}).items()}
        return cls(frozenset(document["allowed"]), stated)

    def named(self, components: Iterable[Component]) -> list[Component]:
        """Return the components with the licences that the policy states for them."""
        return [
            replace(item, licence=self.stated[normalised(item.name)])
            if item.kind == "python" and normalised(item.name) in self.stated
            else item
            for item in components
        ]

    def problems(self, components: Iterable[Component]) -> list[str]:
        """Return a line for each component that may not be delivered, or of which nobody knows it.

        Debian's packages are the base's. Its main archive holds what the Debian Free Software Guidelines allow, so of
        these only the section counts.
        """
        return sorted(
            {f"{item.name} {item.version}: {flaw}" for item in components if (flaw := self._flaw(item)) is not None}
        )

    def unused(self, components: Iterable[Component]) -> list[str]:
        """Return a line for each statement about a package that nothing has."""
        names = {normalised(item.name) for item in components}
        return [
            f"{FILE}: stated.{name} is in no image and no wheel: take it out" for name in self.stated.keys() - names
        ]

    def _flaw(self, item: Component) -> str | None:
        if item.kind == "debian":
            archive = item.section.partition("/")[0]
            return f"Debian's section {item.section} is not free" if archive in _REFUSED_SECTIONS else None
        if not item.licence:
            return f"its metadata has no licence; read its files, and state it in {FILE}"
        if refused := refused_parts(item.licence, self.allowed):
            return f"licence {', '.join(refused)} is not in the list of {FILE}"
        return None


def _unreadable(text: str, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each value of the file that has not the shape which `Policy` is made of."""
    allowed = document.get("allowed")
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        where = f"{FILE}:{toml_file.line_of(text, 'allowed')}"
        yield f'{where} allowed is no list of SPDX identifiers: write allowed = ["Apache-2.0", "MIT"]'
    stated = document.get("stated", {})
    if not isinstance(stated, dict):
        where = f"{FILE}:{toml_file.line_of(text, 'stated')}"
        yield f"{where} stated is no table: write [stated], and a package on each line below it"
        return
    for name, entry in stated.items():
        if not isinstance(entry, dict) or not all(_is_text(entry.get(key)) for key in ("licence", "read")):
            where = f"{FILE}:{toml_file.line_of(text, name)}"
            yield f'{where} stated.{name} lacks licence or read: write {name} = {{licence = "MIT", read = "LICENSE"}}'


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def refused_parts(expression: str, allowed: frozenset[str]) -> list[str]:
    """Return what of an SPDX expression is not allowed; of `A OR B` one side is enough."""
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    refused, rest = _either(tokens, allowed)
    return [expression] if rest else refused


def _either(tokens: list[str], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    refused, rest = _both(tokens, allowed)
    while rest and rest[0].upper() == "OR":
        other, rest = _both(rest[1:], allowed)
        refused = [*refused, *other] if refused and other else []
    return refused, rest


def _both(tokens: list[str], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    refused, rest = _one(tokens, allowed)
    while rest and rest[0].upper() == "AND":
        other, rest = _one(rest[1:], allowed)
        refused = [*refused, *other]
    return refused, rest


def _one(tokens: list[str], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    if tokens and tokens[0] == "(":
        refused, rest = _either(tokens[1:], allowed)
        return (refused, rest[1:]) if rest and rest[0] == ")" else (["("], rest)
    name = " ".join(tokens[:3]) if len(tokens) > 2 and tokens[1].upper() == "WITH" else " ".join(tokens[:1])
    return ([] if name in allowed else [name or "nothing"]), tokens[len(name.split()) :]
