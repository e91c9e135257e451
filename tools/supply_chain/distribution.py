"""What the wheel brings along when it is installed: the packages of its extras, in the versions of the locks."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement

from pallas_gen.images.inventory import Component, normalised, python_component

from .audit import pins

DISTRIBUTION = "pallas-kit"
EXTRAS = ("all",)


def components(lock: Path) -> list[Component]:
    """Return what `pip install 'pallas-kit[all]'` installs, by the environment of development.

    `required` is what comes without any extra. Versions are held to those of `lock`.

    Raises:
        ValueError: the environment has another version than the lock.
    """
    base = _closure((DISTRIBUTION, ""))
    everything = _closure(*((DISTRIBUTION, extra) for extra in ("", *EXTRAS)))
    versions = pins(lock.read_text("utf-8"))
    result = []
    for name in sorted(everything - {DISTRIBUTION}):
        item = python_component(importlib.metadata.metadata(name))
        if versions.get(name) != item.version:
            raise ValueError(f"{name} is {item.version} here and {versions.get(name)} in {lock.name}: make setup")
        result.append(item if name in base else replace(item, scope="optional"))
    return result


def _closure(*start: tuple[str, str]) -> set[str]:
    """Return the normalised names of distributions that are needed by others with their extras, these included."""
    reached: set[tuple[str, str]] = set()
    open_ends = list(start)
    while open_ends:
        pair = open_ends.pop()
        if pair not in reached:
            reached.add(pair)
            open_ends += _needs(*pair)
    return {name for name, _ in reached}


def _needs(name: str, extra: str) -> Iterator[tuple[str, str]]:
    requirements: Iterable[str] = importlib.metadata.requires(name) or ()
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield normalised(requirement.name), ""
            for further in requirement.extras:
                yield normalised(requirement.name), further
